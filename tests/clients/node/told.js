'use strict';
// Carries out what stands on standard input with ali-ons, one JSON object a line, and says on standard output what
// the client was told. See ../README.md.

const fs = require('fs');
const readline = require('readline');
const { Consumer, Message, Producer } = require('ali-ons');

const [, , namesrv, logFile] = process.argv;
const log = fs.createWriteStream(logFile);
const noted = level => (...words) => log.write(`${level} ${words.map(String).join(' ')}\n`);
const logger = { debug() {}, info: noted('info'), warn: noted('warn'), error: noted('error') };
// The client begins at a queue that it draws: let every run begin at the first.
Math.random = () => 0;

const begun = new Map();

function say(line) {
  process.stdout.write(JSON.stringify(line) + '\n');
}

/** What every client of the package is given. */
function options(one, more) {
  const httpclient = { request: () => Promise.reject(new Error('no address is asked for by HTTP')) };
  return Object.assign({ httpclient, nameSrv: namesrv, logger, instanceName: `${one.id}-${process.pid}` }, more);
}

function made(given) {
  const message = new Message(given.topic, given.tag || '', given.body);
  message.flag = given.flag || 0;
  if (given.key) message.keys = [ given.key ];
  if (given.delay) message.delayTimeLevel = given.delay;
  Object.assign(message.properties, given.properties);
  return message;
}

async function send(one) {
  const given = one.message;
  let result;
  try {
    result = await begun.get(one.id).send(made(given));
  } catch (error) {
    say({ told: 'sent', keys: [ given.key ], error: `${error.name}: ${error.message}` });
    return;
  }
  say({
    told: 'sent', keys: [ given.key ], status: result.sendStatus, msgId: result.msgId, offsetMsgId: result.offsetMsgId || '',
    topic: result.messageQueue.topic, queueId: Number(result.messageQueue.queueId),
    broker: result.messageQueue.brokerName, queueOffset: result.queueOffset,
  });
}

async function consume(one) {
  const consumer = new Consumer(options(one, {
    consumerGroup: one.group, isBroadcast: !!one.broadcast, maxReconsumeTimes: one.maxReconsumeTimes || 16,
    consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET',
  }));
  consumer.on('error', error => logger.error(error.message));
  begun.set(one.id, consumer);
  const fails = one.fails || {};
  for (const [ topic, chosen ] of Object.entries(one.topics)) {
    const expression = chosen.type === 'SQL92' ? { expressionType: 'SQL92', subString: chosen.expression } : chosen.expression;
    consumer.subscribe(topic, expression, async m => {
      say({
        told: 'received', consumer: one.id, topic: m.topic, keys: [ m.keys ], tags: m.tags || '', body: m.body.toString(),
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
  async producer(one) {
    const producer = new Producer(options(one, { producerGroup: one.group }));
    producer.on('error', error => logger.error(error.message));
    begun.set(one.id, producer);
    await producer.ready();
  },
  send,
  consumer: consume,
  async stop(one) {
    const ending = begun.get(one.id);
    begun.delete(one.id);
    await ending.close();
  },
};

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const one = JSON.parse(line);
    try {
      await commands[one.do](one);
      say({ told: 'done', do: one.do });
    } catch (error) {
      say({ told: 'done', do: one.do, error: `${error.name}: ${error.message}` });
    }
  }
  process.exit(0);
}

main();
