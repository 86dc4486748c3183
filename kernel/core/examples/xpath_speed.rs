//! Times expressions over one message: `xpath_speed FILE EXPRESSION...`.
//!
//! Prints per expression its value as a boolean, the steps it takes and the median time of many
//! evaluations in microseconds.

use pathcast_core::door::{Door, Limits};
use pathcast_core::xpath::{Expression, Scratch};
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
        let mut times = Vec::new();
        let mut holds = false;
        for _ in 0..200 {
            let start = Instant::now();
            for _ in 0..50 {
                holds = expression.holds(parsed.message, parsed.names, &mut scratch, u64::MAX)?;
            }
            times.push(start.elapsed().as_secs_f64() * 1e6 / 50.0);
        }
        times.sort_by(f64::total_cmp);
        println!("{:9.3} us {:7} steps {holds:5} {text}", times[100], scratch.steps_taken());
    }
    Ok(())
}
