//! Readers of what is drawn: as much of XML and of Graphviz's language as there is to read, and no more.

use std::collections::HashMap;

/// An element: what is in it, and its own text.
#[derive(Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: HashMap<String, String>,
    pub(crate) children: Vec<Element>,
    pub(crate) text: String,
}

impl Element {
    pub(crate) fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).unwrap_or_else(|| panic!("`{}` has no `{name}`", self.name))
    }

    pub(crate) fn number(&self, name: &str) -> usize {
        self.attribute(name).parse().unwrap_or_else(|_| panic!("`{name}` is no number"))
    }

    /// It and all within it of that class.
    pub(crate) fn of_class<'a>(&'a self, class: &str) -> Vec<&'a Element> {
        let own = self.attributes.get("class").is_some_and(|own| own == class);
        let inner = self.children.iter().flat_map(|child| child.of_class(class));
        own.then_some(self).into_iter().chain(inner).collect()
    }
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let end = rest[at..].find(';').expect("an entity ends") + at;
        plain.push_str(&rest[..at]);
        plain.push(match &rest[at + 1..end] {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            other => panic!("`{other}` is no entity of XML"),
        });
        rest = &rest[end + 1..];
    }
    plain + rest
}

/// The element that a text is.
pub(crate) fn xml(text: &str) -> Element {
    let mut open: Vec<Element> = vec![Element::default()];
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let last = open.last_mut().expect("the root stays");
        last.text.push_str(&unescaped(&rest[..at]));
        let end = rest[at..].find('>').expect("a tag ends") + at;
        let tag = &rest[at + 1..end];
        assert!(!tag.contains('<'), "`{tag}`");
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let closed = open.pop().expect("an open element");
            assert_eq!(closed.name, name);
            open.last_mut().expect("the root stays").children.push(closed);
            continue;
        }
        let (tag, alone) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut element = Element { name: name.into(), ..Element::default() };
        while !attributes.trim().is_empty() {
            let (key, behind) = attributes.split_once("=\"").expect("an attribute has a value");
            let (value, after) = behind.split_once('"').expect("a value ends");
            let double = element.attributes.insert(key.trim().into(), unescaped(value));
            assert_eq!(double, None, "`{key}` twice");
            attributes = after;
        }
        match alone {
            true => open.last_mut().expect("the root stays").children.push(element),
            false => open.push(element),
        }
    }
    assert_eq!((open.len(), rest.trim()), (1, ""));
    let mut all = open.remove(0);
    assert_eq!(all.children.len(), 1);
    all.children.remove(0)
}

/// Statements of a graph.
#[derive(Debug, Default)]
pub(crate) struct Dot {
    /// Nodes with their labels.
    pub(crate) nodes: Vec<(String, String)>,
    /// Edges with their labels.
    pub(crate) edges: Vec<(String, String, String)>,
}

/// Words, signs and strings.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                let mut string = String::from("\"");
                loop {
                    match letters.next().expect("a string ends") {
                        '"' => break,
                        '\\' => string.push(match letters.next().expect("an escape ends") {
                            'n' => '\n',
                            other => other,
                        }),
                        other => string.push(other),
                    }
                }
                tokens.push(string);
            }
            '-' if letters.next_if_eq(&'>').is_some() => tokens.push("->".into()),
            letter if letter.is_alphanumeric() || letter == '_' => {
                let mut word = String::from(letter);
                while let Some(more) = letters.next_if(|next| next.is_alphanumeric() || *next == '_') {
                    word.push(more);
                }
                tokens.push(word);
            }
            letter if letter.is_whitespace() => {}
            letter => tokens.push(letter.into()),
        }
    }
    tokens
}

/// Reads `digraph`, clusters, nodes and edges; fails on anything else.
pub(crate) fn dot(text: &str) -> Dot {
    let tokens = tokens(text);
    let mut words = tokens.iter().map(String::as_str).peekable();
    assert_eq!([words.next(), words.next(), words.next()], [Some("digraph"), Some("plan"), Some("{")]);
    let (mut depth, mut dot) = (1, Dot::default());
    while depth > 0 {
        let word = words.next().expect("all clusters end");
        match word {
            "}" => depth -= 1,
            "subgraph" => {
                words.next().expect("a name");
                assert_eq!(words.next(), Some("{"));
                depth += 1;
            }
            name => {
                let to = words.next_if_eq(&"->").map(|_| words.next().expect("a node"));
                if words.next_if_eq(&"=").is_some() {
                    words.next().expect("a value");
                    assert_eq!((words.next(), to), (Some(";"), None));
                    continue;
                }
                assert_eq!(words.next(), Some("["), "`{name}`");
                let mut label = String::new();
                loop {
                    let key = words.next().expect("a key");
                    assert_eq!(words.next(), Some("="));
                    let value = words.next().expect("a value");
                    if key == "label" {
                        label = value.trim_start_matches('"').into();
                    }
                    match words.next().expect("the list ends") {
                        "," => {}
                        end => {
                            assert_eq!(end, "]");
                            break;
                        }
                    }
                }
                assert_eq!(words.next(), Some(";"));
                match to {
                    Some(to) => dot.edges.push((name.into(), to.into(), label)),
                    None if name == "node" || name == "edge" => {}
                    None => dot.nodes.push((name.into(), label)),
                }
            }
        }
    }
    assert_eq!(words.next(), None);
    dot
}
