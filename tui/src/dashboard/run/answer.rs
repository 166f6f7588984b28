//! Answers of the daemon as events.

use serde::de::DeserializeOwned;
use shared::message::{Answer, Changed, Failure};

use crate::dashboard::event::{Asked, Event, Reply};
use crate::replay;

pub fn understood(asked: Asked, answer: Answer) -> Event {
    fn of<T: DeserializeOwned>(answer: Answer, reply: impl FnOnce(T) -> Reply) -> Result<Reply, Failure> {
        answer.understand::<T>().map(reply)
    }
    let reply = match &asked {
        Asked::List | Asked::Rows(_) => of(answer, Reply::Sessions),
        Asked::Pulse(_) => of(answer, Reply::Pulses),
        Asked::Look(_) => of(answer, Reply::Sight),
        Asked::Seen => of(answer, |_: serde_json::Value| Reply::Done(None)),
        Asked::New(_) => of(answer, |changed: Changed| Reply::Session(Box::new(changed.session))),
        // some say more than that it is done
        Asked::Deed(..) => {
            of(answer, |value: serde_json::Value| Reply::Done(value.get("note").and_then(serde_json::Value::as_str).map(str::to_owned)))
        }
        Asked::Exec(_) | Asked::Cancel => of(answer, |result| Reply::Exec(Box::new(result))),
        Asked::Layers(_) => of(answer, |layers| Reply::Layers(Box::new(layers))),
        Asked::States(_) => of(answer, Reply::States),
        Asked::Events(_) => of(answer, Reply::Events),
        Asked::Calls(_) => of(answer, Reply::Calls),
        Asked::Files(_) => of(answer, Reply::Files),
        Asked::Marks(_) | Asked::Open(_) => of(answer, Reply::Outline),
        Asked::Time(_, what) => Ok(Reply::Time(replay::understood(*what, answer))),
        Asked::Moment(_) => of(answer, Reply::Moment),
        Asked::Stats => of(answer, |stats| Reply::Stats(Box::new(stats))),
        Asked::Calendar => of(answer, Reply::Calendar),
        Asked::Disk => of(answer, Reply::Disk),
    };
    match reply {
        Ok(reply) => Event::Answer(asked, Box::new(reply)),
        Err(failure) => Event::Refused(asked, failure),
    }
}
