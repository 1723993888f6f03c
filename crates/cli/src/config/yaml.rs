//! Owns the reading of YAML into a tree that knows where each part stands and whether a text was
//! quoted. Refuses what a configuration has no use for: anchors, tags, several documents.

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span};

/// Line and column of a part, both from 1.
pub(super) type Place = (usize, usize);

/// A part of the document.
#[derive(Debug)]
pub(super) enum Node {
    /// A text as written; whether it stood in quotes or a block.
    Scalar { text: String, quoted: bool, place: Place },
    /// A sequence.
    List { items: Vec<Self>, place: Place },
    /// A mapping: name, its place, value.
    Map { entries: Vec<(String, Place, Self)>, place: Place },
}

impl Node {
    pub(super) fn place(&self) -> Place {
        match self {
            Self::Scalar { place, .. } | Self::List { place, .. } | Self::Map { place, .. } => {
                *place
            }
        }
    }

    /// Says whether nothing was written.
    pub(super) fn is_null(&self) -> bool {
        let Self::Scalar { text, quoted: false, .. } = self else { return false };
        matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }
}

/// What is wrong with a document, and where.
pub(super) type Fault = (Place, String);

/// How deep parts may lie in each other; a configuration has three levels.
const DEPTH_MAX: usize = 16;

/// Reads one document; none is an empty mapping.
///
/// # Errors
/// The first fault.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let mut reader = Reader { parser: Parser::new_from_str(text), depth: 0 };
    let mut root = None;
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd, _) => {}
            (Event::StreamEnd, _) => break,
            (event, place) if root.is_none() => root = Some(reader.node(event, place)?),
            (_, place) => return Err((place, "a second document begins; one is read".to_owned())),
        }
    }
    let empty = Node::Map { entries: Vec::new(), place: (1, 1) };
    Ok(root.filter(|node| !node.is_null()).unwrap_or(empty))
}

struct Reader<'text, I: granit_parser::BorrowedInput<'text>> {
    parser: Parser<'text, I>,
    depth: usize,
}

impl<'text, I: granit_parser::BorrowedInput<'text>> Reader<'text, I> {
    fn next(&mut self) -> Result<(Event<'text>, Place), Fault> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, place_of(&span))),
            Some(Err(error)) => Err(fault_of(&error)),
            None => Ok((Event::StreamEnd, (1, 1))),
        }
    }

    fn node(&mut self, event: Event<'text>, place: Place) -> Result<Node, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err((place, format!("lies deeper than {DEPTH_MAX} levels")));
        }
        let node = match event {
            Event::Scalar(text, style, anchor, tag) => {
                plain(place, anchor, tag.is_some())?;
                let quoted = style != ScalarStyle::Plain;
                Node::Scalar { text: text.into_owned(), quoted, place }
            }
            Event::SequenceStart(_, anchor, tag) => {
                plain(place, anchor, tag.is_some())?;
                self.list(place)?
            }
            Event::MappingStart(_, anchor, tag) => {
                plain(place, anchor, tag.is_some())?;
                self.map(place)?
            }
            Event::Alias(_) => return Err((place, ANCHORS.to_owned())),
            _ => return Err((place, "is not understood".to_owned())),
        };
        self.depth -= 1;
        Ok(node)
    }

    fn list(&mut self, place: Place) -> Result<Node, Fault> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Node::List { items, place }),
                (event, at) => items.push(self.node(event, at)?),
            }
        }
    }

    fn map(&mut self, place: Place) -> Result<Node, Fault> {
        let mut entries: Vec<(String, Place, Node)> = Vec::new();
        loop {
            let (event, at) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Node::Map { entries, place });
            }
            let Node::Scalar { text: name, .. } = self.node(event, at)? else {
                return Err((at, "a key must be a single text".to_owned()));
            };
            if name == "<<" {
                return Err((at, ANCHORS.to_owned()));
            }
            if let Some((_, (line, _), _)) = entries.iter().find(|(have, ..)| *have == name) {
                return Err((at, format!("the key {name} was given in line {line} already")));
            }
            let (event, value_at) = self.next()?;
            let value = self.node(event, value_at)?;
            entries.push((name, at, value));
        }
    }
}

const ANCHORS: &str = "anchors, aliases and merge keys are not used here: write the value out";

fn plain(place: Place, anchor: usize, tagged: bool) -> Result<(), Fault> {
    match (anchor, tagged) {
        (0, false) => Ok(()),
        (0, true) => Err((place, "tags are not used here: write the value alone".to_owned())),
        _ => Err((place, ANCHORS.to_owned())),
    }
}

fn place_of(span: &Span) -> Place {
    (span.start.line(), span.start.col() + 1)
}

fn fault_of(error: &ScanError) -> Fault {
    let place = (error.marker().line(), error.marker().col() + 1);
    (place, format!("is not YAML: {}", error.info()))
}
