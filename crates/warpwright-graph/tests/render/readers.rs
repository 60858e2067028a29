//! A reader of what is drawn: as much of Graphviz's language as there is to read, and no more.

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
