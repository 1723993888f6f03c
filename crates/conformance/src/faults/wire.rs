//! Owns reading PostgreSQL's protocol as far as a commit can be told from the rest: in a `COMMIT` of its
//! own, sent along behind other statements, or in a statement that commits by itself. Refuses to know
//! what is done about one. What TLS hides is carried unread.

use std::collections::{HashMap, VecDeque};

/// The codes of a connection's first message that ask for a byte in answer: TLS, GSSAPI.
const ASKS_FIRST: [u32; 2] = [80_877_103, 80_877_104];
const HEADER: usize = 5;

/// What one round of messages, ended by a `Query` or `Sync`, does to the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// Commits, once the server agrees.
    Commits,
    /// Neither begins nor ends one that has written.
    Other,
}

/// A whole message, or bytes that are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// Its letter; 0 for what has none.
    pub(crate) letter: u8,
    pub(crate) bytes: Vec<u8>,
}

impl Message {
    fn body(&self) -> &[u8] {
        self.bytes.get(HEADER..).unwrap_or_default()
    }
}

/// Cuts one way's bytes into messages.
#[derive(Debug, Default)]
struct Cutter {
    pending: Vec<u8>,
    /// How many of the next messages have no letter: the first of a client; a single byte of a server.
    first: bool,
    single: bool,
    unread: bool,
}

impl Cutter {
    fn next(&mut self) -> Option<Message> {
        if self.unread || self.single {
            let length = if self.unread { self.pending.len() } else { self.pending.len().min(1) };
            let bytes: Vec<u8> = self.pending.drain(..length).collect();
            self.single &= bytes.is_empty();
            return (!bytes.is_empty()).then_some(Message { letter: 0, bytes });
        }
        let at = usize::from(!self.first);
        let length: [u8; 4] = self.pending.get(at..at + 4)?.try_into().ok()?;
        let whole = usize::try_from(u32::from_be_bytes(length)).ok()? + at;
        if self.pending.len() < whole || whole < at + 4 {
            return None;
        }
        let bytes: Vec<u8> = self.pending.drain(..whole).collect();
        let letter = if self.first { 0 } else { bytes[0] };
        Some(Message { letter, bytes })
    }
}

/// Both ways of one connection, as far as they were read.
#[derive(Debug)]
pub(crate) struct Session {
    client: Cutter,
    server: Cutter,
    /// Whether the client is inside a transaction, after all that it has sent.
    inside: bool,
    /// What this round has sent so far.
    said: Said,
    /// Statements by name: whether each writes, ends a transaction.
    prepared: HashMap<Vec<u8>, Said>,
    portals: HashMap<Vec<u8>, Said>,
    /// The rounds that the server has not answered.
    rounds: VecDeque<Round>,
    /// Whether the round in answer has failed, or was rolled back.
    failed: bool,
}

/// What text does to the transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    begins: bool,
    writes: bool,
    commits: bool,
    rolls_back: bool,
}

impl Said {
    /// Reads the statements of a text roughly: by their first words, and for writes by any.
    fn of(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text).to_ascii_lowercase();
        let mut said = Self::default();
        for statement in text.split(';') {
            match statement.split_whitespace().next().unwrap_or("") {
                "begin" | "start" => said = Self { begins: true, writes: said.writes, ..said },
                "commit" | "end" => said = Self { begins: false, commits: true, ..said },
                "rollback" | "abort" if !statement.contains(" to ") => {
                    said = Self { begins: false, rolls_back: true, ..said };
                }
                _ => {}
            }
        }
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        said.writes = words.any(|word| matches!(word, "insert" | "update" | "delete" | "merge"));
        said
    }

    fn and(self, other: Self) -> Self {
        Self {
            begins: self.begins || other.begins,
            writes: self.writes || other.writes,
            commits: self.commits || other.commits,
            rolls_back: self.rolls_back || other.rolls_back,
        }
    }
}

/// A message of the client's, and the round that it ends.
pub(crate) type FromClient = (Message, Option<Round>);
/// A message of the server's, the round that it belongs to, and whether it says that this is committed.
pub(crate) type FromServer = (Message, Option<Round>, bool);

impl Session {
    pub(crate) fn new() -> Self {
        Self {
            client: Cutter { first: true, ..Cutter::default() },
            server: Cutter::default(),
            inside: false,
            said: Said::default(),
            prepared: HashMap::new(),
            portals: HashMap::new(),
            rounds: VecDeque::new(),
            failed: false,
        }
    }

    /// Takes bytes of the client's; the messages that are whole now.
    pub(crate) fn client(&mut self, bytes: &[u8]) -> Vec<FromClient> {
        self.client.pending.extend_from_slice(bytes);
        let mut whole = Vec::new();
        while let Some(message) = self.client.next() {
            let round = self.hear(&message);
            self.rounds.extend(round);
            whole.push((message, round));
        }
        whole
    }

    /// Takes bytes of the server's; the messages that are whole now.
    pub(crate) fn server(&mut self, bytes: &[u8]) -> Vec<FromServer> {
        self.server.pending.extend_from_slice(bytes);
        let mut whole = Vec::new();
        loop {
            let was_single = self.server.single;
            let Some(message) = self.server.next() else { return whole };
            if was_single {
                // Agreed: from here on nothing can be read.
                self.server.unread = message.bytes == b"S" || message.bytes == b"G";
                self.client.unread = self.server.unread;
                whole.push((message, None, false));
                continue;
            }
            whole.push(self.answer(message));
        }
    }

    /// Whether the client still waits for the answer to a round that commits.
    pub(crate) fn awaits_commit(&self) -> bool {
        self.rounds.contains(&Round::Commits)
    }

    fn hear(&mut self, message: &Message) -> Option<Round> {
        let body = message.body();
        match message.letter {
            0 if self.client.first => {
                let code = message.bytes.get(4..8).and_then(|code| code.try_into().ok());
                let asks = code.is_some_and(|it| ASKS_FIRST.contains(&u32::from_be_bytes(it)));
                self.server.single = asks;
                self.client.first = asks;
                // The server's first words, after a log-in, end as a round does.
                (!asks).then_some(Round::Other)
            }
            b'P' => {
                let (name, text) = cut(body);
                self.prepared.insert(name.to_vec(), Said::of(cut(text).0));
                None
            }
            b'B' => {
                let (portal, rest) = cut(body);
                let said = self.prepared.get(cut(rest).0).copied().unwrap_or_default();
                self.portals.insert(portal.to_vec(), said);
                None
            }
            b'E' => {
                let said = self.portals.get(cut(body).0).copied().unwrap_or_default();
                self.said = self.said.and(said);
                None
            }
            b'Q' => {
                self.said = self.said.and(Said::of(cut(body).0));
                Some(self.end_round())
            }
            b'S' => Some(self.end_round()),
            _ => None,
        }
    }

    fn end_round(&mut self) -> Round {
        let said = std::mem::take(&mut self.said);
        let by_itself = said.writes && !self.inside && !said.begins && !said.rolls_back;
        let commits = said.commits || by_itself;
        self.inside = (self.inside || said.begins) && !said.commits && !said.rolls_back;
        if commits { Round::Commits } else { Round::Other }
    }

    fn answer(&mut self, message: Message) -> FromServer {
        let round = self.rounds.front().copied();
        match message.letter {
            b'E' => self.failed = true,
            b'C' if message.body().starts_with(b"ROLLBACK") => self.failed = true,
            b'Z' => {
                self.rounds.pop_front();
                let failed = std::mem::take(&mut self.failed);
                let done = round == Some(Round::Commits) && !failed;
                return (message, round, done);
            }
            _ => {}
        }
        (message, round, false)
    }
}

/// A text that ends with a zero, and what comes after it.
fn cut(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(letter: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[letter], &length[..], body].concat()
    }

    fn started() -> Session {
        let mut session = Session::new();
        assert_eq!(session.client(&[0, 0, 0, 8, 0, 3, 0, 0]).len(), 1);
        assert_eq!(session.server(&message(b'Z', b"I")).len(), 1);
        session
    }

    fn rounds(session: &mut Session, bytes: &[u8]) -> Vec<Round> {
        session.client(bytes).into_iter().filter_map(|(_, round)| round).collect()
    }

    #[test]
    fn a_commit_of_its_own_is_seen_both_ways() {
        let mut session = started();
        let begin = message(b'Q', b"begin isolation level read committed; set x = 1\0");
        let write = [message(b'P', b"s1\0update t set a = 1\0\0\0"), message(b'B', b"\0s1\0")];
        let sent = [begin, write.concat(), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")];
        assert_eq!(rounds(&mut session, &sent.concat()), [Round::Other, Round::Other]);
        assert_eq!(rounds(&mut session, &message(b'Q', b"commit\0")), [Round::Commits]);
        let replies = [message(b'Z', b"T"), message(b'Z', b"T"), message(b'C', b"COMMIT\0")];
        let heard = session.server(&replies.concat());
        assert!(heard.iter().all(|(.., done)| !done));
        assert!(session.awaits_commit());
        assert!(session.server(&message(b'Z', b"I"))[0].2);
        assert!(!session.awaits_commit());
    }

    #[test]
    fn a_statement_that_commits_by_itself_is_seen() {
        let mut session = started();
        let text = b"\0with x as (delete from t returning 1) select * from x\0\0\0";
        let sent = [message(b'P', text), message(b'B', b"\0\0"), message(b'E', b"\0\0\0\0\0")];
        assert_eq!(rounds(&mut session, &sent.concat()), []);
        assert_eq!(rounds(&mut session, &message(b'S', b"")), [Round::Commits]);
        let sent = message(b'Q', b"table jobs\0");
        assert_eq!(rounds(&mut session, &sent), [Round::Other]);
    }

    #[test]
    fn what_was_rolled_back_is_not_committed() {
        let mut session = started();
        let sent = [message(b'Q', b"begin\0"), message(b'Q', b"commit\0")];
        assert_eq!(rounds(&mut session, &sent.concat()), [Round::Other, Round::Commits]);
        let replies = [message(b'Z', b"T"), message(b'C', b"ROLLBACK\0"), message(b'Z', b"I")];
        assert!(session.server(&replies.concat()).iter().all(|(.., done)| !done));
    }

    #[test]
    fn bytes_come_in_any_pieces_and_tls_is_carried_unread() {
        let mut session = started();
        let sent = message(b'Q', b"commit\0");
        let pieces: Vec<_> = sent.iter().flat_map(|byte| session.client(&[*byte])).collect();
        assert_eq!(pieces.len(), 1);
        let mut hidden = Session::new();
        assert_eq!(hidden.client(&[0, 0, 0, 8, 4, 210, 22, 47]).len(), 1);
        assert_eq!(hidden.server(b"S").len(), 1);
        assert_eq!(hidden.client(&[22, 3, 1])[0].0.bytes, [22, 3, 1]);
    }
}
