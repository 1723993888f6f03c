//! Owns a provider that behaves as a test tells it, and remembers every message that went out. Knows no
//! rows.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use leasehold::notify::{Looked, Message, Provider, Question};
use leasehold::{Failure, FailureCode, async_trait};

/// What the provider does with one send.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Takes it, and the answer is lost.
    TakeUnheard,
    /// Does not take it.
    Refuse(FailureCode),
}

/// A message that went out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) token: String,
    pub(crate) recipient: String,
    pub(crate) payload: String,
}

#[derive(Debug, Default)]
struct Inside {
    gone: Vec<Gone>,
    sends: u32,
    asked: u32,
    acts: HashMap<String, VecDeque<Act>>,
    silent: u32,
    blind: u32,
}

/// The provider; clones are the same one.
#[derive(Clone)]
pub(crate) struct Post {
    inside: Arc<Mutex<Inside>>,
    looks_up: bool,
    knows_tokens: bool,
    before: Arc<dyn Fn(&Message<'_>) + Send + Sync>,
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Post")
    }
}

impl Post {
    /// A provider that can be asked, and that knows no token again.
    pub(crate) fn that_looks_up() -> Self {
        let inside = Arc::default();
        Self { inside, looks_up: true, knows_tokens: false, before: Arc::new(|_| ()) }
    }

    /// A provider that cannot be asked, and that knows a token again.
    pub(crate) fn that_knows_tokens() -> Self {
        Self { looks_up: false, knows_tokens: true, ..Self::that_looks_up() }
    }

    /// A provider that does neither.
    pub(crate) fn plain() -> Self {
        Self { looks_up: false, ..Self::that_looks_up() }
    }

    /// Does something before each send.
    pub(crate) fn before(mut self, look: impl Fn(&Message<'_>) + Send + Sync + 'static) -> Self {
        self.before = Arc::new(look);
        self
    }

    /// Says how the next sends to a recipient go; those after go well.
    pub(crate) fn act(self, recipient: &str, acts: &[Act]) -> Self {
        self.lock().acts.insert(recipient.to_owned(), acts.iter().copied().collect());
        self
    }

    /// Answers so many look-ups with a failure.
    pub(crate) fn silent(self, times: u32) -> Self {
        self.lock().silent = times;
        self
    }

    /// Tells of nothing that it has taken, so many look-ups long.
    pub(crate) fn blind(self, times: u32) -> Self {
        self.lock().blind = times;
        self
    }

    pub(crate) fn gone(&self) -> Vec<Gone> {
        self.lock().gone.clone()
    }

    /// How many messages went to a recipient.
    pub(crate) fn count(&self, recipient: &str) -> usize {
        self.lock().gone.iter().filter(|gone| gone.recipient == recipient).count()
    }

    pub(crate) fn sends(&self) -> u32 {
        self.lock().sends
    }

    pub(crate) fn asked(&self) -> u32 {
        self.lock().asked
    }

    /// Forgets every message, as if none had been sent.
    pub(crate) fn forget(&self) {
        self.lock().gone.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("no panic under this lock")
    }
}

#[async_trait]
impl Provider for Post {
    async fn send(&self, message: &Message<'_>) -> Result<String, Failure> {
        (self.before)(message);
        let mut inside = self.lock();
        inside.sends += 1;
        let act = inside.acts.get_mut(message.recipient).and_then(VecDeque::pop_front);
        if let Some(Act::Refuse(code)) = act {
            return Err(Failure::new(code, "not taken"));
        }
        let known = inside.gone.iter().any(|gone| gone.token == message.token);
        if !(known && self.knows_tokens) {
            inside.gone.push(Gone {
                token: message.token.to_owned(),
                recipient: message.recipient.to_owned(),
                payload: message.payload.to_owned(),
            });
        }
        match act {
            Some(Act::TakeUnheard) => Err(Failure::new(FailureCode::NetworkTimeout, "unheard")),
            _ => Ok(format!("id-{}", &message.token[..8])),
        }
    }

    async fn lookup(&self, question: &Question<'_>) -> Result<Looked, Failure> {
        let mut inside = self.lock();
        if !self.looks_up {
            return Ok(Looked::NotOffered);
        }
        inside.asked += 1;
        if inside.silent > 0 {
            inside.silent -= 1;
            return Err(Failure::new(FailureCode::UpstreamUnavailable, "ask later"));
        }
        if inside.blind > 0 {
            inside.blind -= 1;
            return Ok(Looked::Absent);
        }
        let found = inside.gone.iter().any(|gone| gone.token == question.token);
        Ok(match found {
            true => Looked::Found(format!("id-{}", &question.token[..8])),
            false => Looked::Absent,
        })
    }
}
