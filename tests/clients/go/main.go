// Told carries out what stands on its standard input with RocketMQ's Go client, one JSON object a line, and says on
// its standard output what the client was told. See ../README.md.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

type line map[string]any

var saying sync.Mutex

// say writes one line at once; listeners of several threads do so.
func say(what line) {
	text, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	saying.Lock()
	defer saying.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

// asked is one line of the input; each command takes its own fields.
type asked struct {
	Do       string   `json:"do"`
	ID       string   `json:"id"`
	Group    string   `json:"group"`
	Mode     string   `json:"mode"`
	Message  message  `json:"message"`
	Messages []message `json:"messages"`
	Plan     string   `json:"plan"`

	Topics       map[string]selector `json:"topics"`
	Broadcast    bool                `json:"broadcast"`
	Orderly      bool                `json:"orderly"`
	MaxReconsume int32               `json:"maxReconsumeTimes"`
	Fails        map[string]int32    `json:"fails"`
	Broker       string              `json:"broker"`
	Topic        string              `json:"topic"`
	Queues       int                 `json:"queues"`
}

type message struct {
	Topic      string            `json:"topic"`
	Broker     string            `json:"broker"`
	Queue      int               `json:"queue"`
	Body       string            `json:"body"`
	Tag        string            `json:"tag"`
	Key        string            `json:"key"`
	Delay      int               `json:"delay"`
	Flag       int32             `json:"flag"`
	Properties map[string]string `json:"properties"`
}

type selector struct {
	Type       string `json:"type"`
	Expression string `json:"expression"`
}

func (m message) made() *primitive.Message {
	out := primitive.NewMessage(m.Topic, []byte(m.Body))
	out.Queue = &primitive.MessageQueue{Topic: m.Topic, BrokerName: m.Broker, QueueId: m.Queue}
	out.Flag = m.Flag
	if m.Tag != "" {
		out.WithTag(m.Tag)
	}
	if m.Key != "" {
		out.WithKeys([]string{m.Key})
	}
	if m.Delay > 0 {
		out.WithDelayTimeLevel(m.Delay)
	}
	for name, value := range m.Properties {
		out.WithProperty(name, value)
	}
	return out
}

// closing are what was begun under an id, ended by `stop`.
var closing = map[string]func() error{}

func do(one asked) error {
	switch one.Do {
	case "producer":
		return startProducer(one)
	case "send":
		return send(one)
	case "half":
		return half(one)
	case "consumer":
		return startConsumer(one)
	case "admin":
		return administer(one)
	case "stop":
		end, found := closing[one.ID]
		if !found {
			return fmt.Errorf("nothing was begun as %q", one.ID)
		}
		delete(closing, one.ID)
		return end()
	}
	return fmt.Errorf("unknown command %q", one.Do)
}

var namesrv primitive.NsResolver

func main() {
	rlog.SetLogLevel("warn")
	rlog.SetOutputPath(os.Args[2])
	namesrv = primitive.NewPassthroughResolver([]string{os.Args[1]})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var one asked
		err := json.Unmarshal(lines.Bytes(), &one)
		if err == nil {
			err = do(one)
		}
		answer := line{"told": "done", "do": one.Do}
		if err != nil {
			answer["error"] = err.Error()
		}
		say(answer)
	}
	for _, end := range closing {
		end()
	}
}
