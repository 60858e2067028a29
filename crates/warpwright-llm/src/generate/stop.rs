//! Stop strings: the text ends before the first one.
//!
//! Text comes in pieces, one per token. A piece that may become part of a stop string is held back, so that no part of
//! a stop string is ever shown; everything else is passed on at once.

/// Finds stop strings in a text that comes in pieces.
///
/// The first complete stop string ends the text; if several end at the same place, the longest counts. The division
/// into pieces makes no difference.
#[derive(Clone, Debug)]
pub struct StopMatcher {
    stops: Vec<String>,
    /// Text that was not given on: after a push, the longest end of it that begins a stop string.
    held: String,
}

/// The result of a piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matched<'s> {
    /// Text that can be shown.
    pub text: String,
    /// The stop string that ends it, if one does.
    pub stop: Option<&'s str>,
}

impl StopMatcher {
    /// Looks for these strings. Empty ones, which would end every text at once, are ignored.
    pub fn new<S: Into<String>>(stops: impl IntoIterator<Item = S>) -> StopMatcher {
        let stops = stops.into_iter().map(S::into).filter(|stop| !stop.is_empty()).collect();
        StopMatcher { stops, held: String::new() }
    }

    /// Takes the next piece. After a stop string the text is over, and the next piece begins a new one.
    pub fn push(&mut self, text: &str) -> Matched<'_> {
        self.held.push_str(text);
        // The first to be whole; from the earliest place, if there are several.
        let found = self
            .stops
            .iter()
            .enumerate()
            .filter_map(|(index, stop)| self.held.find(stop).map(|at| (at + stop.len(), at, index)))
            .min();
        if let Some((_, at, index)) = found {
            let mut text = std::mem::take(&mut self.held);
            text.truncate(at);
            return Matched { text, stop: Some(&self.stops[index]) };
        }
        let kept =
            self.held.len() - self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0);
        let held = self.held.split_off(kept);
        Matched { text: std::mem::replace(&mut self.held, held), stop: None }
    }

    /// The text held back, when the text ends by itself.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Bytes of the longest end of `text` that begins `stop`, and is not all of it.
fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len() - 1);
    (1..=longest).rev().find(|&len| text.as_bytes().ends_with(&stop.as_bytes()[..len])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown of pieces, and what ended them.
    fn run(stops: &[&str], pieces: &[&str]) -> (String, Option<String>) {
        let mut matcher = StopMatcher::new(stops.iter().copied());
        let mut shown = String::new();
        for piece in pieces {
            let Matched { text, stop } = matcher.push(piece);
            shown.push_str(&text);
            if let Some(stop) = stop {
                return (shown, Some(stop.to_string()));
            }
        }
        shown.push_str(&matcher.finish());
        (shown, None)
    }

    #[test]
    fn nothing_of_a_stop_string_is_shown() {
        let cut = |pieces: &[&str]| run(&["\nUser:"], pieces);
        let ended = |text: &str| (text.to_string(), Some("\nUser:".to_string()));
        assert_eq!(cut(&["Hi", "\nUser: x"]), ended("Hi"));
        assert_eq!(cut(&["Hi\n", "Us", "er", ":"]), ended("Hi"));
        assert_eq!(cut(&["\n\nUser:"]), ended("\n"));
        assert_eq!(cut(&["Hi\nUs", "e it"]), ("Hi\nUse it".to_string(), None));
        assert_eq!(cut(&["Hi\nUser"]), ("Hi\nUser".to_string(), None));
    }

    #[test]
    fn only_what_may_be_a_stop_string_is_held_back() {
        let mut matcher = StopMatcher::new(["aab"]);
        let mut shown = |text| matcher.push(text).text;
        assert_eq!([shown("xa"), shown("a"), shown("a"), shown("c")], ["x", "", "a", "aac"]);
    }

    #[test]
    fn the_first_that_is_whole_ends_the_text_and_the_longest_of_those() {
        assert_eq!(run(&["abcd", "bc"], &["xabcd"]), ("xa".to_string(), Some("bc".to_string())));
        assert_eq!(run(&["bc", "abc"], &["xabcd"]), ("x".to_string(), Some("abc".to_string())));
        assert_eq!(run(&["", "b"], &["ab"]), ("a".to_string(), Some("b".to_string())));
    }

    /// A plain search: the text up to the first stop string that is whole, character by character.
    fn plain(stops: &[String], text: &str) -> (String, Option<String>) {
        for (at, c) in text.char_indices() {
            let so_far = &text[..at + c.len_utf8()];
            let ending = stops.iter().filter(|stop| !stop.is_empty() && so_far.ends_with(stop.as_str()));
            if let Some(stop) = ending.max_by_key(|stop| stop.len()) {
                return (so_far[..so_far.len() - stop.len()].to_string(), Some(stop.clone()));
            }
        }
        (text.to_string(), None)
    }

    #[test]
    fn pieces_of_any_size_give_what_a_plain_search_gives() {
        // Few characters, so that there are many beginnings of stop strings.
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for _ in 0..20_000 {
            let mut word = |max: usize| -> String {
                let len = random(max + 1);
                (0..len).map(|_| ['a', 'b', 'é', '🦀'][random(4).min(random(4))]).collect()
            };
            let stops: Vec<String> = (0..3).map(|_| word(4)).collect();
            let text = word(24);
            let mut pieces = Vec::new();
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let cut =
                    rest.char_indices().map(|(at, c)| at + c.len_utf8()).nth(random(3)).unwrap_or(rest.len());
                pieces.push(&rest[..cut]);
                rest = &rest[cut..];
            }
            let names: Vec<&str> = stops.iter().map(String::as_str).collect();
            assert_eq!(run(&names, &pieces), plain(&stops, &text), "{stops:?} in {pieces:?}");
        }
    }
}
