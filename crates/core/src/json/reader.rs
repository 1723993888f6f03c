//! The grammar of JSON, token by token, on a stack of its own.
//!
//! Owns order, nesting depth and the ban on repeated names. Refuses to recurse, so that no input
//! can exhaust the thread's stack, and refuses to build anything: readers of tokens do that.

use std::borrow::Cow;
use std::collections::HashSet;

use super::lexer::Lexer;
use super::{escape_text, refusal};
use crate::Result;

/// One step through a document.
#[derive(Debug)]
pub(super) enum Token<'a> {
    BeginObject,
    EndObject,
    BeginArray,
    EndArray,
    /// A member name, decoded.
    Name(Cow<'a, str>),
    /// A string value, decoded.
    Text(Cow<'a, str>),
    /// A number as written, or one of the three words.
    Bare(&'a str),
}

/// An open container; an object remembers the names that it has seen.
#[derive(Debug)]
enum Open<'a> {
    Array,
    Object(Names<'a>),
}

/// The names of one object: compared one by one while they are few, hashed from then on.
#[derive(Debug, Default)]
struct Names<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Names<'a> {
    const FEW: usize = 12;

    /// Adds a name; whether it is the first of its kind.
    fn insert(&mut self, name: Cow<'a, str>) -> bool {
        if self.many.is_empty() && self.few.len() < Self::FEW {
            let is_new = !self.few.contains(&name);
            self.few.push(name);
            return is_new;
        }
        self.many.extend(self.few.drain(..));
        self.many.insert(name)
    }
}

#[derive(Clone, Copy, Debug)]
enum Due {
    Value,
    ValueOrEnd,
    Name,
    NameOrEnd,
    CommaOrEnd,
}

/// Walks one document and refuses the first thing that breaks a rule.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    lexer: Lexer<'a>,
    open: Vec<Open<'a>>,
    due: Due,
    depth_max: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, depth_max: usize) -> Self {
        Self { lexer: Lexer::new(text), open: Vec::new(), due: Due::Value, depth_max }
    }

    /// Gives the next token, or `None` after a complete document.
    pub(super) fn next_token(&mut self) -> Result<Option<Token<'a>>> {
        self.lexer.skip_blanks();
        match self.due {
            Due::Value => self.value().map(Some),
            Due::ValueOrEnd if self.lexer.take(b']') => Ok(Some(self.close())),
            Due::ValueOrEnd => self.value().map(Some),
            Due::Name => self.name().map(Some),
            Due::NameOrEnd if self.lexer.take(b'}') => Ok(Some(self.close())),
            Due::NameOrEnd => self.name().map(Some),
            Due::CommaOrEnd => self.after_value(),
        }
    }

    fn after_value(&mut self) -> Result<Option<Token<'a>>> {
        match self.open.last() {
            None if self.lexer.peek().is_none() => Ok(None),
            None => Err(self.lexer.unexpected("the end of the document")),
            Some(Open::Array) if self.lexer.take(b']') => Ok(Some(self.close())),
            Some(Open::Array) if self.lexer.take(b',') => {
                self.lexer.skip_blanks();
                self.value().map(Some)
            }
            Some(Open::Array) => Err(self.lexer.unexpected("',' or ']'")),
            Some(Open::Object(_)) if self.lexer.take(b'}') => Ok(Some(self.close())),
            Some(Open::Object(_)) if self.lexer.take(b',') => {
                self.due = Due::Name;
                self.next_token()
            }
            Some(Open::Object(_)) => Err(self.lexer.unexpected("',' or '}'")),
        }
    }

    fn value(&mut self) -> Result<Token<'a>> {
        self.due = Due::CommaOrEnd;
        match self.lexer.peek() {
            Some(b'{') => self.enter(Open::Object(Names::default())),
            Some(b'[') => self.enter(Open::Array),
            Some(b'"') => self.lexer.string().map(Token::Text),
            Some(b'-' | b'0'..=b'9') => self.lexer.number().map(Token::Bare),
            Some(b't') => self.lexer.word("true").map(Token::Bare),
            Some(b'f') => self.lexer.word("false").map(Token::Bare),
            Some(b'n') => self.lexer.word("null").map(Token::Bare),
            _ => Err(self.lexer.unexpected("a value")),
        }
    }

    fn enter(&mut self, container: Open<'a>) -> Result<Token<'a>> {
        if self.open.len() >= self.depth_max {
            let found = format!("nesting deeper than {}", self.depth_max);
            return Err(refusal(self.lexer.offset(), &found, "depth"));
        }
        self.lexer.bump();
        let (due, token) = match container {
            Open::Array => (Due::ValueOrEnd, Token::BeginArray),
            Open::Object(_) => (Due::NameOrEnd, Token::BeginObject),
        };
        self.due = due;
        self.open.push(container);
        Ok(token)
    }

    fn close(&mut self) -> Token<'a> {
        self.due = Due::CommaOrEnd;
        match self.open.pop() {
            Some(Open::Object(_)) => Token::EndObject,
            _ => Token::EndArray,
        }
    }

    fn name(&mut self) -> Result<Token<'a>> {
        let start = self.lexer.offset();
        if self.lexer.peek() != Some(b'"') {
            return Err(self.lexer.unexpected("a member name"));
        }
        let name = self.lexer.string()?;
        if let Some(Open::Object(seen)) = self.open.last_mut()
            && !seen.insert(name.clone())
        {
            let found = format!("member name \"{}\" a second time", escape_text(&name, 64));
            return Err(refusal(start, &found, "duplicate-name"));
        }
        self.lexer.skip_blanks();
        if !self.lexer.take(b':') {
            return Err(self.lexer.unexpected("':'"));
        }
        self.due = Due::Value;
        Ok(Token::Name(name))
    }
}
