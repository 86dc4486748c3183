//! A matcher that has compiled an automaton answers, after every change, as one that compiles it anew.

use crate::world::{Batch, Random, answers, frozen, pool, register_all};
use pathcast_core::registry::delivery::dissemination::Dissemination;
use std::collections::BTreeSet;

impl Random {
    /// A path, conditions at some of its steps; nested paths may have conditions themselves.
    fn conditional(&mut self, depth: u64) -> String {
        let mut text = String::new();
        for _ in 0..1 + self.below(3) {
            text.push_str(if self.below(3) == 0 { "//" } else { "/" });
            text.push_str(["a", "b", "c", "*:e", "*"][self.below(5) as usize]);
            match self.below(9) {
                0 => text.push_str(&format!("[@n={}]", self.below(4))),
                1 => text.push_str(&format!("[@n='{}']", self.below(4))),
                2 => text.push_str(&format!("[@n>{}][@n<3]", self.below(4))),
                3 => text.push_str(&format!("[{}]", 1 + self.below(3))),
                4 if depth > 0 => text.push_str(&format!("[.{}]", self.conditional(depth - 1))),
                5 => text.push_str("[@*]"),
                _ => {}
            }
        }
        text
    }
}

#[test]
fn what_was_compiled_takes_in_every_change() {
    let expressions = ["count(//a) > 2", "boolean(//comment()) or //b"];
    for seed in 0..8 {
        let mut random = Random(seed);
        let index = Dissemination::default();
        let pools = [pool(1 << 24, 1), pool(6_000, 1), pool(0, 1)];
        let messages: Vec<String> = (0..6).map(|_| random.message()).collect();
        let mut live = BTreeSet::new();
        for step in 0..80 {
            // Once more than the automaton remembers.
            let count = if step == 72 { 2500 } else { random.below(3) };
            for at in 0..count {
                let paths: Vec<String> =
                    (0..1 + random.below(3) / 2)
                        .map(|_| {
                            if random.below(2) == 0 {
                                random.query()
                            } else {
                                random.conditional(2)
                            }
                        })
                        .collect();
                let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                let expression = expressions.get(random.below(12) as usize).copied();
                let id = format!("{step}.{at}");
                assert!(register_all(&index, &id, &paths, expression).is_ok(), "{paths:?}");
                live.insert(id);
            }
            if random.below(4) == 0 {
                let gone = live.iter().nth(random.below(1 + live.len() as u64) as usize).cloned();
                let removed =
                    index.change(|state| state.unsubscribe(gone.iter().map(String::as_str)));
                assert!(removed.is_ok());
                live.retain(|id| Some(id) != gone.as_ref());
            }
            if random.below(50) == 0 {
                assert!(index.freeze().is_ok());
            }
            let batch = Batch(messages[..1 + random.below(6) as usize].to_vec());
            let expected = answers(&pool(1 << 24, 1), &index, &batch);
            for (at, pool) in pools.iter().enumerate() {
                let found = answers(pool, &index, &batch);
                assert_eq!(found, expected, "seed {seed} step {step} pool {at}");
            }
        }
        assert_eq!(index.state().len(), live.len());
        let batch = Batch(messages);
        let before = answers(&pools[0], &index, &batch);
        let frozen = Dissemination::from_snapshot(frozen(&index));
        assert_eq!(answers(&pool(1 << 24, 1), &frozen, &batch), before, "seed {seed}");
    }
}
