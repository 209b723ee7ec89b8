'use strict';
// Executes commands from standard input with ali-ons, one JSON object a line, and prints to standard output what
// happened. See ../README.md.

const fs = require('fs');
const readline = require('readline');
const { Consumer, Message, Producer } = require('ali-ons');

const [, , namesrv, logFile] = process.argv;
const log = fs.createWriteStream(logFile);
const logAt = level => (...words) => log.write(`${level} ${words.map(String).join(' ')}\n`);
const logger = { debug() {}, info: logAt('info'), warn: logAt('warn'), error: logAt('error') };
// The client begins at a queue that it draws: let every run begin at the first.
Math.random = () => 0;

const clients = new Map();

function printLine(line) {
  process.stdout.write(JSON.stringify(line) + '\n');
}

/** Return the options that every client of the package needs. */
function options(command, more) {
  const httpclient = { request: () => Promise.reject(new Error('no address is asked for by HTTP')) };
  return Object.assign({ httpclient, nameSrv: namesrv, logger, instanceName: `${command.id}-${process.pid}` }, more);
}

function newMessage(fields) {
  const message = new Message(fields.topic, fields.tag || '', fields.body);
  message.flag = fields.flag || 0;
  if (fields.key) message.keys = [ fields.key ];
  if (fields.delay) message.delayTimeLevel = fields.delay;
  Object.assign(message.properties, fields.properties);
  return message;
}

async function send(command) {
  const fields = command.message;
  let result;
  try {
    result = await clients.get(command.id).send(newMessage(fields));
  } catch (error) {
    printLine({ event: 'sent', keys: [ fields.key ], error: `${error.name}: ${error.message}` });
    return;
  }
  printLine({
    event: 'sent', keys: [ fields.key ], status: result.sendStatus, msgId: result.msgId, offsetMsgId: result.offsetMsgId || '',
    topic: result.messageQueue.topic, queueId: Number(result.messageQueue.queueId),
    broker: result.messageQueue.brokerName, queueOffset: result.queueOffset,
  });
}

async function consume(command) {
  const consumer = new Consumer(options(command, {
    consumerGroup: command.group, isBroadcast: !!command.broadcast, maxReconsumeTimes: command.maxReconsumeTimes || 16,
    consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET',
  }));
  consumer.on('error', error => logger.error(error.message));
  clients.set(command.id, consumer);
  const fails = command.fails || {};
  for (const [ topic, chosen ] of Object.entries(command.topics)) {
    const expression = chosen.type === 'SQL92' ? { expressionType: 'SQL92', subString: chosen.expression } : chosen.expression;
    consumer.subscribe(topic, expression, async m => {
      printLine({
        event: 'received', consumer: command.id, topic: m.topic, keys: [ m.keys ], tags: m.tags || '', body: m.body.toString(),
        msgId: m.msgId, queueId: m.queueId, queueOffset: m.queueOffset, reconsumeTimes: m.reconsumeTimes, storeSize: m.storeSize,
        sysFlag: m.sysFlag, flag: m.flag, bodyCRC: m.bodyCRC, properties: m.properties, commitLogOffset: m.commitLogOffset,
        prepared: m.preparedTransactionOffset,
      });
      // Thrown: the client forgets ACTION_RETRY of what comes from the retry topic.
      if (m.reconsumeTimes < (fails[m.keys] || 0)) throw new Error('to be consumed again');
    });
  }
  await consumer.ready();
}

const commands = {
  async producer(command) {
    const producer = new Producer(options(command, { producerGroup: command.group }));
    producer.on('error', error => logger.error(error.message));
    clients.set(command.id, producer);
    await producer.ready();
  },
  send,
  consumer: consume,
  async stop(command) {
    const client = clients.get(command.id);
    clients.delete(command.id);
    await client.close();
  },
};

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    try {
      await commands[command.do](command);
      printLine({ event: 'done', do: command.do });
    } catch (error) {
      printLine({ event: 'done', do: command.do, error: `${error.name}: ${error.message}` });
    }
  }
  process.exit(0);
}

main();
