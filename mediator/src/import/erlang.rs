//! Parses Erlang terms in the format of `file:consult`: terms that each end with a full stop.
//! PURE.

/// The value of a term.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `name` or `'any text'`.
    Atom(String),
    /// `"text"`, also in several pieces.
    Text(String),
    /// `<<"text">>` or `<<1, 2>>`.
    Binary(Vec<u8>),
    /// A whole number, or a character as in `$a`.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// `{...}`
    Tuple(Vec<Term>),
    /// `[...]`
    List(Vec<Term>),
}

/// A term and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The start of the term.
    pub at: Position,
    pub value: Value,
}

/// A position in a text, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// The reason why a text is not a list of terms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {message}", at.line, at.column)]
pub struct SyntaxError {
    pub at: Position,
    /// The problem.
    pub message: String,
}

/// The maximum nesting depth of terms. Settings need four levels.
const MAX_DEPTH: usize = 64;

/// Parses all terms of a text.
///
/// # Errors
/// The text is invalid.
pub fn consult(text: &str) -> Result<Vec<Term>, SyntaxError> {
    let mut reader = Reader {
        rest: text.chars().collect(),
        next: 0,
        at: Position { line: 1, column: 1 },
    };
    let mut terms = Vec::new();
    loop {
        reader.skip();
        if reader.peek().is_none() {
            return Ok(terms);
        }
        terms.push(reader.term(0)?);
        reader.skip();
        if !reader.take('.') {
            return Err(reader.error("a full stop is missing after a term"));
        }
    }
}

struct Reader {
    rest: Vec<char>,
    next: usize,
    at: Position,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.next).copied()
    }

    fn peek_second(&self) -> Option<char> {
        self.rest.get(self.next + 1).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.next += 1;
        match c {
            '\n' => {
                self.at = Position {
                    line: self.at.line + 1,
                    column: 1,
                }
            }
            _ => self.at.column += 1,
        }
        Some(c)
    }

    fn take(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        if there {
            self.bump();
        }
        there
    }

    fn error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError {
            at: self.at,
            message: message.into(),
        }
    }

    /// Blanks and comments.
    fn skip(&mut self) {
        while let Some(c) = self.peek() {
            if c == '%' {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.bump();
                }
            } else if c.is_whitespace() || c == '\u{feff}' {
                self.bump();
            } else {
                return;
            }
        }
    }

    fn term(&mut self, depth: usize) -> Result<Term, SyntaxError> {
        self.skip();
        let at = self.at;
        if depth > MAX_DEPTH {
            return Err(self.error("terms are nested too deeply"));
        }
        let value = match self.peek() {
            None => return Err(self.error("the text ends inside a term")),
            Some('{') => {
                self.bump();
                Value::Tuple(self.elements('}', at, depth)?)
            }
            Some('[') => {
                self.bump();
                Value::List(self.elements(']', at, depth)?)
            }
            Some('<') => self.binary()?,
            Some('"') => self.text()?,
            Some('\'') => {
                self.bump();
                Value::Atom(self.quoted('\'', at)?)
            }
            Some('$') => {
                self.bump();
                let c = self.character(at)?;
                Value::Integer(i64::from(u32::from(c)))
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+') => self.number()?,
            Some(c) if c.is_lowercase() => Value::Atom(self.word()),
            Some('#') => return Err(self.error("maps and records are not supported")),
            Some(c) if c.is_uppercase() || c == '_' => {
                let word = self.word();
                let message =
                    format!("'{word}' is a variable; an atom begins with a lower-case letter");
                return Err(SyntaxError { at, message });
            }
            Some(c) => return Err(self.error(format!("no term begins with '{c}'"))),
        };
        Ok(Term { at, value })
    }

    fn elements(
        &mut self,
        end: char,
        open: Position,
        depth: usize,
    ) -> Result<Vec<Term>, SyntaxError> {
        let mut elements = Vec::new();
        self.skip();
        if self.take(end) {
            return Ok(elements);
        }
        loop {
            elements.push(self.term(depth + 1)?);
            self.skip();
            if self.take(end) {
                return Ok(elements);
            }
            if !self.take(',') {
                let Position { line, column } = open;
                return Err(match self.peek() {
                    Some('|') => self.error("lists with a tail are not supported"),
                    _ => self.error(format!(
                        "',' or '{end}' is missing (opened at {line}:{column})"
                    )),
                });
            }
            self.skip();
            if self.peek() == Some(end) {
                return Err(self.error(format!("a term is missing between ',' and '{end}'")));
            }
        }
    }

    fn binary(&mut self) -> Result<Value, SyntaxError> {
        let open = self.at;
        self.bump();
        if !self.take('<') {
            return Err(self.error("no term begins with '<'"));
        }
        let mut bytes = Vec::new();
        self.skip();
        while !self.take('>') {
            match self.term(1)?.value {
                Value::Text(text) => bytes.extend(text.as_bytes()),
                Value::Integer(byte) if u8::try_from(byte).is_ok() => bytes.push(byte as u8),
                _ => return Err(self.error("a binary contains texts and bytes")),
            }
            if self.take('/') {
                self.word(); // utf8
            }
            self.skip();
            if !self.take(',') && self.peek() != Some('>') {
                let Position { line, column } = open;
                return Err(self.error(format!("'>>' is missing (opened at {line}:{column})")));
            }
            self.skip();
        }
        match self.take('>') {
            true => Ok(Value::Binary(bytes)),
            false => Err(self.error("'>>' is missing")),
        }
    }

    /// A text; adjacent pieces form one text.
    fn text(&mut self) -> Result<Value, SyntaxError> {
        let mut text = String::new();
        while self.peek() == Some('"') {
            let at = self.at;
            self.bump();
            text += &self.quoted('"', at)?;
            self.skip();
        }
        Ok(Value::Text(text))
    }

    fn quoted(&mut self, end: char, open: Position) -> Result<String, SyntaxError> {
        let mut text = String::new();
        loop {
            if self.peek() == Some(end) {
                self.bump();
                return Ok(text);
            }
            if self.peek() == Some('\\') && self.peek_second() == Some('\n') {
                self.bump();
                self.bump();
                continue;
            }
            text.push(self.character(open)?);
        }
    }

    /// One character, escaped or not.
    fn character(&mut self, open: Position) -> Result<char, SyntaxError> {
        let ended = |reader: &Self| {
            let Position { line, column } = open;
            reader.error(format!(
                "the text ends inside the quotes opened at {line}:{column}"
            ))
        };
        let c = self.bump().ok_or_else(|| ended(self))?;
        if c != '\\' {
            return Ok(c);
        }
        let escaped = self.bump().ok_or_else(|| ended(self))?;
        Ok(match escaped {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            's' => ' ',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'e' => '\u{1b}',
            'd' => '\u{7f}',
            '0'..='7' => {
                let mut code = escaped.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else {
                        break;
                    };
                    self.bump();
                    code = code * 8 + digit;
                }
                char::from_u32(code).unwrap_or('\u{fffd}')
            }
            'x' => {
                let braces = self.take('{');
                let mut code = 0_u32;
                let most = if braces { 6 } else { 2 };
                for _ in 0..most {
                    let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) else {
                        break;
                    };
                    self.bump();
                    code = code * 16 + digit;
                }
                if braces && !self.take('}') {
                    return Err(self.error("'}' is missing after \\x{"));
                }
                char::from_u32(code).ok_or_else(|| self.error("the character does not exist"))?
            }
            other => other,
        })
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self
            .peek()
            .filter(|c| c.is_alphanumeric() || matches!(c, '_' | '@'))
        {
            word.push(c);
            self.bump();
        }
        word
    }

    fn number(&mut self) -> Result<Value, SyntaxError> {
        let at = self.at;
        let mut text = String::new();
        if let Some(sign) = self.peek().filter(|c| matches!(c, '-' | '+')) {
            self.bump();
            text.extend((sign == '-').then_some('-'));
        }
        self.digits(&mut text);
        let wrong = |text: &str| SyntaxError {
            at,
            message: format!("'{text}' is not a number of at most 64 bits"),
        };
        if self.peek() == Some('#') {
            self.bump();
            let negative = text.starts_with('-');
            let base: u32 = text
                .trim_start_matches('-')
                .parse()
                .map_err(|_| wrong(&text))?;
            let digits = self.word();
            if !(2..=36).contains(&base) {
                return Err(wrong(&text));
            }
            let value = i64::from_str_radix(&digits, base).map_err(|_| wrong(&digits))?;
            return Ok(Value::Integer(if negative { -value } else { value }));
        }
        if self.peek() == Some('.') && self.peek_second().is_some_and(|c| c.is_ascii_digit()) {
            text.extend(self.bump());
            self.digits(&mut text);
            if let Some('e' | 'E') = self.peek() {
                text.extend(self.bump());
                if let Some('-' | '+') = self.peek() {
                    text.extend(self.bump());
                }
                self.digits(&mut text);
            }
            return text.parse().map(Value::Float).map_err(|_| wrong(&text));
        }
        text.parse().map(Value::Integer).map_err(|_| wrong(&text))
    }

    fn digits(&mut self, text: &mut String) {
        while let Some(c) = self.peek().filter(|c| c.is_ascii_digit() || *c == '_') {
            self.bump();
            if c != '_' {
                text.push(c);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(text: &str) -> Value {
        let mut terms = consult(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(terms.len(), 1, "{text}");
        terms.remove(0).value
    }

    #[test]
    fn every_kind_of_term_is_parsed() {
        for (text, value) in [
            ("name.", Value::Atom("name".into())),
            ("'a b\\'c'.", Value::Atom("a b'c".into())),
            ("drive_to_point@x.", Value::Atom("drive_to_point@x".into())),
            (
                "\"a\\tb\\\"\\x41\\x{17c}\\101\" % why\n \"c\".",
                Value::Text("a\tb\"A\u{17c}Ac".into()),
            ),
            ("<<\"ab\", 10>>.", Value::Binary(b"ab\n".to_vec())),
            ("-4.", Value::Integer(-4)),
            ("16#fF.", Value::Integer(255)),
            ("1_000.", Value::Integer(1000)),
            ("$a.", Value::Integer(97)),
            ("$\\n.", Value::Integer(10)),
            ("-1.5e3.", Value::Float(-1500.0)),
            ("{}.", Value::Tuple(vec![])),
            ("[ ].", Value::List(vec![])),
        ] {
            assert_eq!(one(text), value, "{text}");
        }
        let Value::Tuple(elements) = one("{a,\n  [1 , \"x\"]}.") else {
            panic!("a tuple")
        };
        assert_eq!(elements[1].at, Position { line: 2, column: 3 });
        assert_eq!(consult("% nothing\n").unwrap(), []);
        assert_eq!(consult("a. b.").unwrap().len(), 2);
    }

    #[test]
    fn errors_name_place_and_problem() {
        for (text, error) in [
            ("a", "1:2: a full stop is missing after a term"),
            ("{a, b", "1:6: ',' or '}' is missing (opened at 1:1)"),
            ("{a\nb}.", "2:1: ',' or '}' is missing (opened at 1:1)"),
            ("[a,].", "1:4: a term is missing between ',' and ']'"),
            (
                "\"abc.",
                "1:6: the text ends inside the quotes opened at 1:1",
            ),
            (
                "Name.",
                "1:1: 'Name' is a variable; an atom begins with a lower-case letter",
            ),
            ("#{}.", "1:1: maps and records are not supported"),
            ("[a|b].", "1:3: lists with a tail are not supported"),
            (
                "99999999999999999999.",
                "1:1: '99999999999999999999' is not a number of at most 64 bits",
            ),
            ("{a, ?}.", "1:5: no term begins with '?'"),
        ] {
            assert_eq!(consult(text).unwrap_err().to_string(), error, "{text}");
        }
        assert!(consult(&"[".repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in "[\\[\\]{}<>\"'\\\\$%#,.a-zA-Z0-9_ \\n-]{0,60}") {
            let _ = consult(&text);
        }

        #[test]
        fn quoted_texts_are_parsed_back(text: String) {
            let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
            prop_assert_eq!(one(&format!("\"{quoted}\".")), Value::Text(text));
        }
    }
}
