//! `rust_client NAMESRV BROKER`: sends, pulls, pops, decides transactions, waits for timers, queries and administrates
//! with rocketmq-client-rust, and prints what the client received, one JSON object a line. See ../README.md.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cheetah_string::CheetahString;
use rocketmq_client_rust::{
    BrokerAdmin, ClientResult, ClientRuntime, ClientRuntimeConfig, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus,
    ConsumerAdmin, DefaultMQAdminExt, DefaultMQProducer, DefaultMQPullConsumer, DefaultMQPushConsumer,
    LocalTransactionState, MQPushConsumer, MessageListenerConcurrently, RouteAdmin, SendResult, TopicAdmin,
    TransactionListener, TransactionMQProducer,
};
use rocketmq_model::common::consumer::consume_from_where::ConsumeFromWhere;
use rocketmq_model::common::message::message_ext::MessageExt;
use rocketmq_model::common::message::message_queue::MessageQueue;
use rocketmq_model::common::message::message_single::Message;
use rocketmq_model::common::message::MessageTrait;
use rocketmq_observability::TelemetryRuntimeGuard;
use rocketmq_runtime::RuntimeOwner;
use serde_json::{json, Value};

const TOPIC: &str = "RustEvents";
const QUEUES: i32 = 4;
const PATIENCE: Duration = Duration::from_secs(60);

fn print_record(kind: &str, about: &str, value: Value) {
    println!("{}", json!({"kind": kind, "about": about, "value": value}));
}

/// Print the result of a call: its value, or its error.
fn print_result<T>(kind: &str, about: &str, result: ClientResult<T>, value: impl FnOnce(T) -> Value) {
    match result {
        Ok(result) => print_record(kind, about, value(result)),
        Err(error) => print_record(kind, about, json!({"error": error.to_string()})),
    }
}

fn message(queue: usize, key: &str) -> Message {
    let tags = ["created", "paid", "标签"][queue % 3];
    let mut message =
        Message::builder().topic(TOPIC).tags(tags).key(key).body_slice(format!("{key} 北 grün").as_bytes()).build_unchecked();
    message.put_property("amount".into(), format!("{}", queue * 7).into());
    message
}

fn queue(number: i32) -> MessageQueue {
    MessageQueue::from_parts(TOPIC, "broker-a", number)
}

fn sent(result: &SendResult) -> Value {
    json!({
        "status": format!("{:?}", result.send_status),
        "queue": result.message_queue.as_ref().map(|queue| queue.queue_id()),
        "queueOffset": result.queue_offset,
        "idLength": result.msg_id.as_ref().map(|id| id.len()),
        "offsetIdLength": result.offset_msg_id.as_ref().map(|id| id.len()),
        "regionId": result.region_id,
        "traceOn": result.trace_on,
        "hasRecallHandle": result.recall_handle.is_some(),
    })
}

fn received(message: &MessageExt) -> Value {
    let properties: HashMap<String, String> =
        message.properties().iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    json!({
        "topic": message.topic().to_string(),
        "queue": message.queue_id(),
        "queueOffset": message.queue_offset(),
        "storeSize": message.store_size(),
        "sysFlag": message.sys_flag(),
        "flag": message.flag(),
        "bodyCrc": message.body_crc(),
        "reconsumeTimes": message.reconsume_times(),
        "body": String::from_utf8_lossy(message.body().unwrap_or_default().as_ref()),
        "properties": properties,
    })
}

fn key_of(message: &MessageExt) -> String {
    message.properties().get(&CheetahString::from("KEYS")).map(|key| key.to_string()).unwrap_or_default()
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// Prints each message, fails as often as `fails` says of its key, and counts the keys that were consumed.
struct Listener {
    consumer: &'static str,
    fails: Mutex<HashMap<String, usize>>,
    consumed: Arc<AtomicUsize>,
}

impl MessageListenerConcurrently for Listener {
    fn consume_message(
        &self,
        messages: &[&MessageExt],
        _context: &ConsumeConcurrentlyContext,
    ) -> ClientResult<ConsumeConcurrentlyStatus> {
        for message in messages {
            let key = key_of(message);
            print_record("received", &format!("{} {key}", self.consumer), received(message));
            if let Some(count) = self.fails.lock().unwrap().get_mut(&key) {
                if *count > 0 {
                    *count -= 1;
                    return Ok(ConsumeConcurrentlyStatus::ReconsumeLater);
                }
            }
            self.consumed.fetch_add(1, Ordering::SeqCst);
        }
        Ok(ConsumeConcurrentlyStatus::ConsumeSuccess)
    }
}

/// Decides by the key: at once, or at the first check.
struct Decider;

impl Decider {
    fn decide(key: &str, is_check: bool) -> LocalTransactionState {
        match key {
            "t-commit" => LocalTransactionState::CommitMessage,
            "t-rollback" => LocalTransactionState::RollbackMessage,
            "t-later" if is_check => LocalTransactionState::CommitMessage,
            _ => LocalTransactionState::Unknown,
        }
    }
}

impl TransactionListener for Decider {
    fn execute_local_transaction(
        &self,
        message: &dyn MessageTrait,
        _argument: Option<&(dyn Any + Send + Sync)>,
    ) -> LocalTransactionState {
        let key = message.get_keys().unwrap_or_default().to_string();
        print_record("executing", &key, json!(null));
        Self::decide(&key, false)
    }

    fn check_local_transaction(&self, message: &MessageExt) -> LocalTransactionState {
        let key = key_of(message);
        print_record("checked", &key, json!({"body": String::from_utf8_lossy(message.body().unwrap_or_default().as_ref())}));
        Self::decide(&key, true)
    }
}

async fn wait_until(count: &AtomicUsize, expected: usize) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while count.load(Ordering::SeqCst) < expected && tokio::time::Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn sends(runtime: &Arc<ClientRuntime>, namesrv: &str) -> ClientResult<()> {
    let mut producer = DefaultMQProducer::builder(runtime.clone())
        .producer_group("rust-senders")
        .name_server_addr(namesrv)
        .send_msg_timeout(10_000)
        .build();
    producer.start().await?;
    for number in 0..12usize {
        let key = format!("m{number}");
        let result = producer.send_to_queue(message(number % 4, &key), queue(number as i32 % QUEUES)).await;
        print_result("sent", &key, result, |result| result.as_ref().map(sent).unwrap_or_default());
    }
    let batch = (0..3).map(|number| message(1, &format!("b{number}"))).collect::<Vec<_>>();
    print_result("sent", "batch", producer.send_batch_to_queue(batch, queue(1)).await, |result| sent(&result));
    let large = Message::builder().topic(TOPIC).key("large").body_slice("0123456789".repeat(900).as_bytes()).build_unchecked();
    print_result("sent", "large", producer.send_to_queue(large, queue(2)).await, |result| {
        result.as_ref().map(sent).unwrap_or_default()
    });
    let mut timer = message(3, "timer");
    timer.put_property("TIMER_DELAY_MS".into(), "2000".into());
    print_result("sent", "timer", producer.send_to_queue(timer, queue(3)).await, |result| {
        result.as_ref().map(sent).unwrap_or_default()
    });
    let mut delayed = message(3, "delayed");
    delayed.set_delay_time_level(1);
    print_result("sent", "delayed", producer.send_to_queue(delayed, queue(3)).await, |result| {
        result.as_ref().map(sent).unwrap_or_default()
    });
    print_result("sent", "nowhere", producer.send(Message::builder().topic("bad topic!").body_slice(b"x").build_unchecked()).await, |_| {
        json!("sent")
    });

    let first = producer.send_to_queue(message(0, "asked"), queue(0)).await?.unwrap_or_default();
    tokio::time::sleep(Duration::from_secs(2)).await; // queues and index are built beside the sends
    for number in 0..QUEUES {
        print_result("maxOffset", &number.to_string(), producer.max_offset(&queue(number)).await, |offset| json!(offset));
        print_result("minOffset", &number.to_string(), producer.min_offset(&queue(number)).await, |offset| json!(offset));
        print_result("searchOffset", &number.to_string(), producer.search_offset(&queue(number), 0).await, |offset| json!(offset));
    }
    let unique_id = first.msg_id.clone().unwrap_or_default().to_string();
    let offset_id = first.offset_msg_id.clone().unwrap_or_default();
    for key in ["asked", "m3", "b1", "nobody"] {
        let result = producer.query_message(TOPIC, key, 8, 0, now_ms() + 60_000).await;
        print_result("queried", key, result, |result| json!(result.message_list().iter().map(received).collect::<Vec<_>>()));
    }
    print_result("viewed", "unique id", producer.view_message(TOPIC, &unique_id).await, |message| received(&message));
    print_result("viewed", "offset id", producer.view_message(TOPIC, &offset_id).await, |message| received(&message));
    print_result("viewed", "nobody's id", producer.view_message(TOPIC, "7F00000100002A9F00000000009999FF").await, |message| {
        received(&message)
    });
    producer.shutdown().await;
    Ok(())
}

async fn pulls(runtime: &Arc<ClientRuntime>, namesrv: &str) -> ClientResult<()> {
    let consumer = DefaultMQPullConsumer::builder(runtime.clone())
        .consumer_group("rust-pullers")
        .name_server_addr(namesrv)
        .build()?;
    consumer.start().await?;
    let mut queues = consumer.fetch_subscribe_message_queues(TOPIC).await?;
    queues.sort_by_key(|queue| queue.queue_id());
    print_record("queues", TOPIC, json!(queues.iter().map(|queue| queue.queue_id()).collect::<Vec<_>>()));
    for (about, number, tags, offset) in [("all", 1, "*", 0), ("tags", 0, "created", 0), ("end", 2, "*", 500), ("negative", 2, "*", -1)] {
        let result = consumer.pull(&queue(number), tags, offset, 32).await;
        print_result("pulled", about, result, |result| {
            json!({
                "status": format!("{:?}", result.pull_status()),
                "next": result.next_begin_offset(),
                "min": result.min_offset(),
                "max": result.max_offset(),
                "messages": result.msg_found_list().unwrap_or_default().iter().map(received).collect::<Vec<_>>(),
            })
        });
    }
    print_result("committed", "1", consumer.update_consume_offset(&queue(1), 3).await, |_| json!(null));
    print_result("fetched", "1", consumer.fetch_consume_offset(&queue(1), false).await, |offset| json!(offset));
    consumer.shutdown().await
}

async fn push(
    runtime: &Arc<ClientRuntime>,
    namesrv: &str,
    consumer_name: &'static str,
    topic: &str,
    expected: usize,
    pops: bool,
) -> ClientResult<()> {
    let consumed = Arc::new(AtomicUsize::new(0));
    let mut consumer = DefaultMQPushConsumer::builder(runtime.clone())
        .consumer_group(consumer_name)
        .name_server_addr(namesrv)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .client_rebalance(!pops)
        .build();
    consumer.subscribe(topic, "*").await?;
    let fails = Mutex::new(HashMap::from([("m5".to_string(), 1)]));
    consumer.register_message_listener_concurrently(Listener { consumer: consumer_name, fails, consumed: consumed.clone() });
    consumer.start().await?;
    wait_until(&consumed, expected).await;
    consumer.shutdown().await;
    Ok(())
}

async fn transactions(runtime: &Arc<ClientRuntime>, namesrv: &str, topic: &str) -> ClientResult<()> {
    let mut producer = TransactionMQProducer::builder(runtime.clone())
        .producer_group("rust-deciders")
        .name_server_addr(namesrv)
        .topics(vec![topic])
        .transaction_listener(Decider)
        .build();
    producer.start().await?;
    for key in ["t-commit", "t-rollback", "t-later"] {
        let half = Message::builder().topic(topic).tags("order").key(key).body_slice(key.as_bytes()).build_unchecked();
        let result = producer.send_message_in_transaction::<(), _>(half, None).await;
        print_result("half", key, result, |result| {
            json!({
                "state": result.local_transaction_state.map(|state| format!("{state:?}")),
                "status": result.send_result.map(|sent| format!("{:?}", sent.send_status)),
            })
        });
    }
    push(runtime, namesrv, "rust-transactions", topic, 2, false).await?;
    producer.shutdown().await;
    Ok(())
}

async fn administrates(runtime: &Arc<ClientRuntime>, namesrv: &str, broker: &str) -> ClientResult<()> {
    let mut admin = DefaultMQAdminExt::new(runtime.clone());
    admin.set_namesrv_addr(namesrv);
    BrokerAdmin::start(admin.inner_mut()).await?;
    let admin_impl = admin.inner();
    let address = CheetahString::from(broker);
    let topic = CheetahString::from(TOPIC);
    print_result("admin", "topics", TopicAdmin::fetch_all_topic_list(admin_impl).await, |list| {
        let mut names: Vec<String> = list.topic_list.iter().map(|name| name.to_string()).collect();
        names.sort();
        json!(names)
    });
    print_result("admin", "route", TopicAdmin::examine_topic_route_info(admin_impl, topic.clone()).await, |route| json!(route));
    print_result("admin", "cluster", RouteAdmin::examine_broker_cluster_info(admin_impl).await, |cluster| json!(cluster));
    print_result("admin", "groups", TopicAdmin::query_topic_consume_by_who(admin_impl, topic.clone()).await, |groups| json!(groups));
    print_result("admin", "topic statistics", TopicAdmin::examine_topic_stats(admin_impl, topic.clone(), Some(address.clone())).await, |table| {
        let mut rows: Vec<Value> = table
            .into_offset_table()
            .into_iter()
            .map(|(queue, ends)| json!([queue.queue_id(), ends.get_min_offset(), ends.get_max_offset()]))
            .collect();
        rows.sort_by_key(|row| row.to_string());
        json!(rows)
    });
    print_result(
        "admin",
        "lag",
        ConsumerAdmin::examine_consume_stats(admin_impl, "rust-all".into(), Some(topic.clone()), None, None, None).await,
        |stats| {
            let mut rows: Vec<Value> = stats
                .offset_table
                .into_iter()
                .map(|(queue, row)| json!([queue.queue_id(), row.get_broker_offset(), row.get_consumer_offset()]))
                .collect();
            rows.sort_by_key(|row| row.to_string());
            json!(rows)
        },
    );
    print_result("admin", "figures", BrokerAdmin::fetch_broker_runtime_stats(admin_impl, address.clone()).await, |table| {
        let mut names: Vec<String> = table.table.keys().map(|name| name.to_string()).collect();
        names.sort();
        json!(names)
    });
    print_result(
        "admin",
        "statistics",
        BrokerAdmin::view_broker_stats_data(admin_impl, address.clone(), "TOPIC_PUT_NUMS".into(), topic.clone()).await,
        |data| json!(data.get_stats_minute().get_sum()),
    );
    print_result("admin", "epochs", BrokerAdmin::get_broker_epoch_cache(admin_impl, address.clone()).await, |cache| json!(cache));
    print_result(
        "admin",
        "check of queues in a RocksDB",
        BrokerAdmin::check_rocksdb_cq_write_progress(admin_impl, address.clone(), topic.clone(), 0).await,
        |result| json!(result),
    );
    print_result("admin", "replication", BrokerAdmin::get_broker_ha_status(admin_impl, address.clone()).await, |status| json!(status));
    BrokerAdmin::shutdown(admin.inner_mut()).await;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let (namesrv, broker) = (arguments[1].clone(), arguments[2].clone());
    let owner = RuntimeOwner::new()?;
    let telemetry = TelemetryRuntimeGuard::noop();
    let runtime =
        ClientRuntime::try_new(owner.root_context().component("rust_client"), ClientRuntimeConfig::default(), telemetry.handle())?;
    owner.block_on(async {
        print_result("done", "sends", sends(&runtime, &namesrv).await, |_| json!(null));
        print_result("done", "pulls", pulls(&runtime, &namesrv).await, |_| json!(null));
        // 12 messages, a batch of 3, a large one, the one that was asked for, the timer's and the delayed one
        print_result("done", "push", push(&runtime, &namesrv, "rust-all", TOPIC, 19, false).await, |_| json!(null));
        print_result("done", "pops", push(&runtime, &namesrv, "rust-pops", TOPIC, 19, true).await, |_| json!(null));
        print_result("done", "transactions", transactions(&runtime, &namesrv, "RustTransactions").await, |_| json!(null));
        print_result("done", "admin", administrates(&runtime, &namesrv, &broker).await, |_| json!(null));
        runtime.shutdown().await;
    });
    std::process::exit(0);
}
