//! Times expressions over one message: `xpath_speed FILE EXPRESSION...`.
//!
//! Prints per expression the median time of many evaluations in microseconds, with the message
//! prepared each time and with one session for all, the steps it takes and its value as a boolean.

use pathcast_core::engine::evaluate::{Scratch, Session};
use pathcast_core::language::xpath::Expression;
use pathcast_core::xml::parser::{Door, Limits};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: xpath_speed FILE EXPRESSION...")?;
    let bytes = std::fs::read(file)?;
    let mut door = Door::new(Limits::default());
    door.keep_full_tree(true);
    let parsed = door.parse(&bytes, None)?;
    let mut scratch = Scratch::default();
    for text in arguments {
        let expression = Expression::parse(&text)?;
        let alone = median(|| {
            expression.holds(parsed.message, parsed.names, &mut scratch, u64::MAX).is_ok()
        });
        let mut session = Session::new(parsed.message, parsed.names, &mut scratch);
        let in_session = median(|| session.holds(&expression, u64::MAX).is_ok());
        let holds = session.holds(&expression, u64::MAX)?;
        let steps = session.steps_taken();
        println!("{alone:8.3} us {in_session:8.3} us {steps:7} steps {holds:5} {text}");
    }
    Ok(())
}

/// Median time of one call in microseconds.
fn median(mut work: impl FnMut() -> bool) -> f64 {
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            assert!((0..50).all(|_| work()), "no budget is exceeded");
            start.elapsed().as_secs_f64() * 1e6 / 50.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[100]
}
