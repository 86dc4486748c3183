//! Random subscriptions of the shared class and random messages, flat and recursive.

/// A small generator of random numbers (splitmix64); the same numbers for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "*"];
const VALUES: [&str; 8] = ["1", "2", "3", "x", "1.0", " 2 ", "1e0", ""];

fn steps(random: &mut Random, least: usize, most: usize, out: &mut String) {
    for _ in 0..least + random.below(most - least + 1) {
        out.push_str(random.of(&["/", "/", "//"]));
        out.push_str(random.of(&NAMES));
    }
}

/// A path from the variable (or, with an empty start, the context), and what of its nodes.
fn relative(random: &mut Random, start: &str) -> String {
    let mut path = start.to_owned();
    steps(random, usize::from(start == "."), 2, &mut path);
    path.push_str(random.of(&["", "", "", "/@k", "/text()"]));
    path
}

fn condition(random: &mut Random, start: &str) -> String {
    let path = relative(random, start);
    match random.below(6) {
        0 => path,
        1 => format!("{} {} {path}", 1 + random.below(3), random.of(&["<", "<=", ">", "=", "!="])),
        2 => format!("{path} {} {}", random.of(&["<", ">=", ">", "!="]), random.below(4)),
        3 => format!("{path} {} \"{}\"", random.of(&["<", ">=", "!="]), random.of(&VALUES)),
        _ => format!("{path} = \"{}\"", random.of(&VALUES)),
    }
}

fn constructor(random: &mut Random, depth: usize) -> String {
    let name = random.of(&["item", "p", "a"]);
    let mut out = format!("<{name}");
    match random.below(4) {
        0 => out.push_str(&format!(" x=\"{}\"", random.of(&VALUES))),
        1 => out.push_str(&format!(" x=\"v{{{}}}w\"", relative(random, "$v"))),
        2 => out.push_str(&format!(" x=\"{{string({})}}\"", relative(random, "$v"))),
        _ => {}
    }
    out.push('>');
    if random.below(5) == 0 {
        out.push_str("{$v/@k}");
    }
    for _ in 0..random.below(4) {
        match random.below(7) {
            0 if depth < 2 => out.push_str(&constructor(random, depth + 1)),
            1 => out.push_str(&format!("t{}&amp;", random.below(10))),
            2 => out.push_str(&format!("{{string({})}}", relative(random, "$v"))),
            3 => out.push_str(&format!("{{data({})}}", relative(random, "$v"))),
            4 => out.push_str("{$v}"),
            _ => {
                let mut path = "$v".to_owned();
                steps(random, 1, 2, &mut path);
                path.push_str(random.of(&["", "", "/text()"]));
                out.push_str(&format!("{{{path}}}"));
            }
        }
    }
    out.push_str(&format!("</{name}>"));
    out
}

/// A subscription of the shared class.
pub fn subscription(random: &mut Random) -> String {
    let mut binding = String::new();
    steps(random, 1, 3, &mut binding);
    for _ in 0..random.below(3).saturating_sub(1) {
        binding.push_str(&format!("[{}]", condition(random, ".")));
    }
    let conditions: Vec<String> = (0..random.below(4)).map(|_| condition(random, "$v")).collect();
    let filter = if conditions.is_empty() {
        String::new()
    } else {
        format!(" where {}", conditions.join(" and "))
    };
    let body = match random.below(5) {
        0 => {
            let mut path = "$v".to_owned();
            steps(random, 0, 2, &mut path);
            path
        }
        _ => constructor(random, 0),
    };
    let flwr = format!("for $v in {binding}{filter} return {body}");
    if random.below(4) > 0 { format!("<out n=\"1\">{{{flwr}}}</out>") } else { flwr }
}

fn element(random: &mut Random, depth: usize, out: &mut String) {
    let name = random.of(&NAMES[..4]);
    out.push_str(&format!("<{name}"));
    if random.below(2) == 0 {
        out.push_str(&format!(" k=\"{}\"", random.of(&VALUES)));
    }
    out.push('>');
    if depth < 5 {
        for _ in 0..random.below(5 - depth.min(3)) {
            if random.below(4) == 0 {
                out.push_str(random.of(&["1", "x", " 2 ", "&amp;", "<![CDATA[<]]>", "<!--c-->"]));
            }
            element(random, depth + 1, out);
        }
    }
    if random.below(3) > 0 {
        out.push_str(random.of(&VALUES));
    }
    out.push_str(&format!("</{name}>"));
}

/// A message.
pub fn message(random: &mut Random) -> String {
    let mut out = String::new();
    element(random, 0, &mut out);
    out
}
