package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

var (
	producers    = map[string]rocketmq.Producer{}
	transactions = map[string]rocketmq.TransactionProducer{}
)

func startProducer(command Command) error {
	options := []producer.Option{
		producer.WithNsResolver(namesrv),
		producer.WithGroupName(command.Group),
		producer.WithInstanceName(command.ID),
		producer.WithQueueSelector(producer.NewManualQueueSelector()),
		producer.WithRetry(2),
		producer.WithSendMsgTimeout(10 * time.Second),
	}
	if command.Plan != "" {
		made, err := rocketmq.NewTransactionProducer(&decider{}, options...)
		if err != nil {
			return err
		}
		transactions[command.ID] = made
		closing[command.ID] = made.Shutdown
		return made.Start()
	}
	made, err := rocketmq.NewProducer(options...)
	if err != nil {
		return err
	}
	producers[command.ID] = made
	closing[command.ID] = made.Shutdown
	return made.Start()
}

var statuses = map[primitive.SendStatus]string{
	primitive.SendOK: "SEND_OK", primitive.SendFlushDiskTimeout: "FLUSH_DISK_TIMEOUT",
	primitive.SendFlushSlaveTimeout: "FLUSH_SLAVE_TIMEOUT", primitive.SendSlaveNotAvailable: "SLAVE_NOT_AVAILABLE",
}

func sent(kind string, keys []string, result *primitive.SendResult, err error) {
	if err != nil {
		printLine(line{"event": kind, "keys": keys, "error": err.Error()})
		return
	}
	printLine(line{
		"event": kind, "keys": keys, "status": statuses[result.Status], "msgId": result.MsgID, "offsetMsgId": result.OffsetMsgID,
		"topic": result.MessageQueue.Topic, "queueId": result.MessageQueue.QueueId, "broker": result.MessageQueue.BrokerName,
		"queueOffset": result.QueueOffset, "transactionId": result.TransactionID, "regionId": result.RegionID, "traceOn": result.TraceOn,
	})
}

func send(command Command) error {
	from, found := producers[command.ID]
	if !found {
		return fmt.Errorf("there is no producer %q", command.ID)
	}
	all := command.Messages
	if all == nil {
		all = []message{command.Message}
	}
	var made []*primitive.Message
	var keys []string
	for _, m := range all {
		made = append(made, m.made())
		keys = append(keys, m.Key)
	}
	ctx := context.Background()
	switch command.Mode {
	case "sync":
		result, err := from.SendSync(ctx, made...)
		sent("sent", keys, result, err)
	case "async":
		var wait sync.WaitGroup
		wait.Add(1)
		err := from.SendAsync(ctx, func(_ context.Context, result *primitive.SendResult, err error) {
			sent("sent", keys, result, err)
			wait.Done()
		}, made...)
		if err != nil {
			return err
		}
		wait.Wait()
	case "oneway":
		return from.SendOneWay(ctx, made...)
	default:
		return fmt.Errorf("unknown mode %q", command.Mode)
	}
	return nil
}

// decider answers halves as their property `plan` says: commit or rollback at once, or at the check of that number.
type decider struct {
	checks sync.Map
}

var states = map[string]primitive.LocalTransactionState{
	"commit": primitive.CommitMessageState, "rollback": primitive.RollbackMessageState,
}

func (d *decider) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	printLine(line{"event": "executing", "keys": []string{m.GetKeys()}, "transactionId": m.TransactionId, "properties": m.GetProperties()})
	if state, found := states[m.GetProperty("plan")]; found {
		return state
	}
	return primitive.UnknowState
}

func (d *decider) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	before, _ := d.checks.LoadOrStore(m.GetKeys(), new(int))
	times := before.(*int)
	*times++
	fields := messageLine("checked", m)
	fields["check"] = *times
	printLine(fields)
	switch m.GetProperty("plan") {
	case "commit-at-first":
		return primitive.CommitMessageState
	case "rollback-at-first":
		return primitive.RollbackMessageState
	case "commit-at-second":
		if *times > 1 {
			return primitive.CommitMessageState
		}
	}
	return primitive.UnknowState
}

func half(command Command) error {
	from, found := transactions[command.ID]
	if !found {
		return fmt.Errorf("there is no producer of transactions %q", command.ID)
	}
	made := command.Message.made()
	made.WithProperty("plan", command.Plan)
	result, err := from.SendMessageInTransaction(context.Background(), made)
	if err != nil {
		sent("half", []string{command.Message.Key}, nil, err)
		return nil
	}
	sent("half", []string{command.Message.Key}, result.SendResult, nil)
	return nil
}

func messageLine(kind string, m *primitive.MessageExt) line {
	return line{
		"event": kind, "topic": m.Topic, "keys": []string{m.GetKeys()}, "tags": m.GetTags(), "body": string(m.Body), "msgId": m.MsgId,
		"offsetMsgId": m.OffsetMsgId, "queueId": m.Queue.QueueId, "queueOffset": m.QueueOffset, "reconsumeTimes": m.ReconsumeTimes,
		"storeSize": m.StoreSize, "sysFlag": m.SysFlag, "flag": m.Flag, "bodyCRC": m.BodyCRC, "properties": m.GetProperties(),
		"commitLogOffset": m.CommitLogOffset, "prepared": m.PreparedTransactionOffset,
	}
}

func startConsumer(command Command) error {
	model := consumer.Clustering
	if command.Broadcast {
		model = consumer.BroadCasting
	}
	options := []consumer.Option{
		consumer.WithNsResolver(namesrv),
		consumer.WithGroupName(command.Group),
		consumer.WithInstance(command.ID),
		consumer.WithConsumerModel(model),
		consumer.WithConsumerOrder(command.Orderly),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumeMessageBatchMaxSize(1),
		consumer.WithSuspendCurrentQueueTimeMillis(200 * time.Millisecond),
	}
	if command.MaxReconsume > 0 {
		options = append(options, consumer.WithMaxReconsumeTimes(command.MaxReconsume))
	}
	made, err := rocketmq.NewPushConsumer(options...)
	if err != nil {
		return err
	}
	listen := func(_ context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range all {
			fields := messageLine("received", m)
			fields["consumer"] = command.ID
			printLine(fields)
			if m.ReconsumeTimes < command.Fails[m.GetKeys()] {
				if command.Orderly {
					return consumer.SuspendCurrentQueueAMoment, nil
				}
				return consumer.ConsumeRetryLater, nil
			}
		}
		return consumer.ConsumeSuccess, nil
	}
	for topic, chosen := range command.Topics {
		kind := consumer.TAG
		if chosen.Type == "SQL92" {
			kind = consumer.SQL92
		}
		err = made.Subscribe(topic, consumer.MessageSelector{Type: kind, Expression: chosen.Expression}, listen)
		if err != nil {
			return err
		}
	}
	closing[command.ID] = made.Shutdown
	return made.Start()
}

// administer makes a topic, lists it and deletes it again.
func administer(command Command) error {
	made, err := admin.NewAdmin(admin.WithResolver(namesrv))
	if err != nil {
		return err
	}
	defer made.Close()
	ctx := context.Background()
	err = made.CreateTopic(ctx, admin.WithTopicCreate(command.Topic), admin.WithBrokerAddrCreate(command.Broker),
		admin.WithReadQueueNums(command.Queues), admin.WithWriteQueueNums(command.Queues))
	if err != nil {
		return err
	}
	queues, err := made.FetchPublishMessageQueues(ctx, command.Topic)
	printLine(line{"event": "queues", "count": len(queues), "error": words(err)})
	all, err := made.FetchAllTopicList(ctx)
	listed := false
	if err == nil {
		for _, topic := range all.TopicList {
			listed = listed || topic == command.Topic
		}
	}
	printLine(line{"event": "topics", "listed": listed, "error": words(err)})
	err = made.DeleteTopic(ctx, admin.WithTopicDelete(command.Topic), admin.WithBrokerAddrDelete(command.Broker))
	printLine(line{"event": "deleted", "error": words(err)})
	return nil
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
