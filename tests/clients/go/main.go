// Executes commands from standard input with RocketMQ's Go client, one JSON object a line, and prints to
// standard output what happened. See ../README.md.
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

var printing sync.Mutex

// printLine writes one line at once; listeners of several threads do so.
func printLine(fields line) {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

// Command is one line of the input; each command takes its own fields.
type Command struct {
	Do       string    `json:"do"`
	ID       string    `json:"id"`
	Group    string    `json:"group"`
	Mode     string    `json:"mode"`
	Message  message   `json:"message"`
	Messages []message `json:"messages"`
	Plan     string    `json:"plan"`

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

// closing has the shutdown function of each client by id; called by `stop`.
var closing = map[string]func() error{}

func execute(command Command) error {
	switch command.Do {
	case "producer":
		return startProducer(command)
	case "send":
		return send(command)
	case "half":
		return half(command)
	case "consumer":
		return startConsumer(command)
	case "admin":
		return administer(command)
	case "stop":
		end, found := closing[command.ID]
		if !found {
			return fmt.Errorf("nothing was begun as %q", command.ID)
		}
		delete(closing, command.ID)
		return end()
	}
	return fmt.Errorf("unknown command %q", command.Do)
}

var namesrv primitive.NsResolver

func main() {
	rlog.SetLogLevel("warn")
	rlog.SetOutputPath(os.Args[2])
	namesrv = primitive.NewPassthroughResolver([]string{os.Args[1]})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var command Command
		err := json.Unmarshal(lines.Bytes(), &command)
		if err == nil {
			err = execute(command)
		}
		answer := line{"event": "done", "do": command.Do}
		if err != nil {
			answer["error"] = err.Error()
		}
		printLine(answer)
	}
	for _, end := range closing {
		end()
	}
}
