"""Execute commands from standard input with RocketMQ's C++ client through its Python package, one JSON object a line,
and print to standard output what happened. See ../README.md.
"""

import ctypes
import json
import os
import sys
import threading

from rocketmq import client, ffi
from rocketmq.exceptions import RocketMQException

NAMESRV, LOG = sys.argv[1:3]
PROPERTIES = (
    *(item.value for item in client.MessageProperty),
    "amount",
    "region",
    "plan",
    "__transactionId__",
    "CLUSTER",
    "TRAN_PREPARED_QUEUE_OFFSET",
    "TRANSACTION_CHECK_TIMES",
    "DLQ_ORIGIN_TOPIC",
    "DLQ_ORIGIN_MESSAGE_ID",
)
"""The interface in C gives a property by its name, and no list of them."""
dll = ffi.dll
SELECTED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
"""A queue's number of so many, for a message and what the caller gave."""
dll.SendMessageOrderly.argtypes = [
    ctypes.c_void_p,
    ctypes.c_void_p,
    SELECTED,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.POINTER(ffi._CSendResult),
]
dll.SendMessageOrderly.restype = ffi._CStatus
dll.SendMessageOnewayOrderly.argtypes = [ctypes.c_void_p, ctypes.c_void_p, SELECTED, ctypes.c_void_p]
dll.SendMessageOnewayOrderly.restype = ffi._CStatus
dll.SetPushConsumerMessageTrace.argtypes = [ctypes.c_void_p, ctypes.c_int]
dll.SetPushConsumerMessageTrace.restype = ffi._CStatus
TRACE = 0
STATUSES = ("SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")

begun = {}
printing = threading.Lock()


def print_line(**line):
    """Print one line at once; listeners of several threads do so."""
    with printing:
        os.write(1, (json.dumps(line) + "\n").encode())


def new_message(fields):
    message = client.Message(fields["topic"])
    message.set_body(fields["body"])
    if fields.get("tag"):
        message.set_tags(fields["tag"])
    message.set_keys(fields["key"])
    if fields.get("delay"):
        message.set_delay_time_level(fields["delay"])
    for name, value in fields.get("properties", {}).items():
        message.set_property(name, value)
    return message


@SELECTED
def chosen(_queues, _message, queue):
    return ctypes.cast(queue, ctypes.POINTER(ctypes.c_int))[0]


def send_fields(result):
    return {
        "status": STATUSES[result.sendStatus],
        "msgId": result.msgId.decode(),
        "queueOffset": result.offset,
    }


def send(command):
    handle = begun[command["id"]]._handle
    result = ffi._CSendResult()
    messages = command.get("messages") or [command["message"]]
    keys = [record["key"] for record in messages]
    try:
        if command.get("messages"):
            batch = dll.CreateBatchMessage()
            for message in messages:
                client.ffi_check(dll.AddMessage(batch, new_message(message)))
            client.ffi_check(dll.SendBatchMessage(handle, batch, ctypes.pointer(result)))
            dll.DestroyBatchMessage(batch)
        else:
            queue = ctypes.cast(ctypes.pointer(ctypes.c_int(messages[0]["queue"])), ctypes.c_void_p)
            if command["mode"] == "oneway":
                client.ffi_check(dll.SendMessageOnewayOrderly(handle, new_message(messages[0]), chosen, queue))
                return
            client.ffi_check(
                dll.SendMessageOrderly(handle, new_message(messages[0]), chosen, queue, 3, ctypes.pointer(result))
            )
    except RocketMQException as error:
        print_line(event="sent", keys=keys, error=repr(error))
        return
    print_line(event="sent", keys=keys, **send_fields(result))


def text(value):
    return value.decode("utf-8", "replace") if value else ""


def print_message(kind, m, **options):
    properties = {name: m.get_property(name) for name in PROPERTIES}
    print_line(
        event=kind,
        topic=m.topic,
        keys=[text(m.keys)],
        tags=text(m.tags),
        body=text(m.body),
        msgId=m.id,
        queueId=m.queue_id,
        queueOffset=m.queue_offset,
        reconsumeTimes=m.reconsume_times,
        storeSize=m.store_size,
        commitLogOffset=m.commit_log_offset,
        prepared=m.prepared_transaction_offset,
        properties={name: text(value) for name, value in properties.items() if value},
        **options,
    )


def producer(command):
    if command.get("plan"):
        producer_ = client.TransactionMQProducer(command["group"], decide_at_check, timeout=10_000)
    else:
        producer_ = client.Producer(command["group"], timeout=10_000)
    begin(command, producer_, dll.SetProducerInstanceName)


def begin(command, client_, set_instance_name):
    client_.set_name_server_address(NAMESRV)
    client.ffi_check(set_instance_name(client_._handle, f"{command['id']}-{os.getpid()}".encode()))
    client_.start()
    begun[command["id"]] = client_


DECISIONS = {"commit": client.TransactionStatus.COMMIT, "rollback": client.TransactionStatus.ROLLBACK}
checks = {}


def decide_at_once(message, _):
    key = text(message.keys)
    print_line(event="executing", keys=[key], transactionId="", properties={})
    return DECISIONS.get(text(message.get_property("plan")), client.TransactionStatus.UNKNOWN)


def decide_at_check(message):
    key = text(message.keys)
    checks[key] = times = checks.get(key, 0) + 1
    print_message("checked", message, check=times)
    plan, _, when = text(message.get_property("plan")).partition("-at-")
    if times >= {"first": 1, "second": 2}.get(when, 99):
        return DECISIONS[plan]
    return client.TransactionStatus.UNKNOWN


def half(command):
    message = new_message(command["message"])
    message.set_property("plan", command["plan"])
    try:
        result = begun[command["id"]].send_message_in_transaction(message, decide_at_once)
    except RocketMQException as error:
        print_line(event="half", keys=[command["message"]["key"]], error=repr(error))
        return
    print_line(
        event="half",
        keys=[command["message"]["key"]],
        status=STATUSES[result.status],
        msgId=result.msg_id,
        queueOffset=result.offset,
    )


def consumer(command):
    model = client.MessageModel.BROADCASTING if command.get("broadcast") else client.MessageModel.CLUSTERING
    consumer_ = client.PushConsumer(command["group"], command.get("orderly", False), model)
    consumer_.set_message_batch_max_size(1)  # one that fails is not handed out again with those that were beside it
    fails = dict(command.get("fails") or {})

    def listen(message):
        print_message("received", message, consumer=command["id"])
        key = text(message.keys)
        fails[key] = failures_left = fails.get(key, 0) - 1
        if failures_left >= 0:
            return client.ConsumeStatus.RECONSUME_LATER
        return client.ConsumeStatus.CONSUME_SUCCESS

    # A consumer that writes no traces ends the process when it is shut down: the library takes their producer for made.
    client.ffi_check(dll.SetPushConsumerMessageTrace(consumer_._handle, TRACE))
    for topic, selector in command["topics"].items():
        consumer_.subscribe(topic, listen, selector["expression"])
    begin(command, consumer_, dll.SetPushConsumerInstanceName)


def stop(command):
    begun.pop(command["id"]).shutdown()


COMMANDS = {"producer": producer, "send": send, "half": half, "consumer": consumer, "stop": stop}


def main():
    for line in sys.stdin:
        record = json.loads(line)
        answer = {"event": "done", "do": record["do"]}
        try:
            COMMANDS[record["do"]](record)
        except RocketMQException as error:
            answer["error"] = repr(error)
        print_line(**answer)
    os._exit(0)  # threads of the library are not waited for


main()
