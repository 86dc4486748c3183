//! The cases of `testdata`, what is written in unusual ways, and messages of the shared data.

use crate::oracle::Both;
use crate::table::table;
use pathcast_core::xml::parser::Limits;
use std::path::{Path, PathBuf};

/// Fails when a stream is not the text it stands for, in whatever way that is written.
#[test]
fn every_case_of_well_formedness() {
    let mut equal = 0;
    for case in table().iter().filter(|case| case.encoding.is_none()) {
        let mut both = Both::new(case.limits());
        both.check_text(&case.bytes());
        equal += both.equal;
    }
    assert!(equal > 150, "only {equal} streams were read");
}

/// Fails when something of a message gets lost on its way through a stream.
#[test]
fn what_is_written_in_unusual_ways_survives() {
    let texts = [
        "<aaaaaaaaa  x='1'\ty=\"2\"\n><b />t<b\n/><bbbbbbbbb/></aaaaaaaaa>",
        "<?xml version='1.0' encoding='utf-8'?>\n<!-- c -->\n<rootroot><?p i?><!--c--><![CDATA[<x>]]></rootroot>\n<!--e-->",
        "<rootroot xmlns='urn:d' xmlns:p='urn:p'><p:c p:x='1' x='2' xml:lang='en'>t</p:c></rootroot>",
        "<aaaaaaaaa x='a&amp;b' y='&#10;&lt;' z='\t'>&lt;b&gt; ]] &gt; \r\n \r x</aaaaaaaaa>",
        "<!DOCTYPE rootroot [<!ENTITY e '<b>t</b>'><!ATTLIST rootroot id ID #IMPLIED y CDATA 'd'>]><rootroot id=' i '>&e;&e;<b/></rootroot>",
        "<!DOCTYPE nitf SYSTEM 'nitf.dtd'><nitf><head/><body><p>one</p><p>two</p></body></nitf>",
        "<rootroot>\u{e9}<\u{e9}l\u{e9}ment \u{fc}='\u{1F600}'>\u{4e2d}</\u{e9}l\u{e9}ment></rootroot>",
        "<aaaaaaaaa x='>' y='/>'><b z=\"it's\"/>a > b</aaaaaaaaa>",
        "<a><a><a><a><a><a></a></a></a></a></a></a>",
        "<aaaaaaaaaa><bbbbbbbbbb>]]</bbbbbbbbbb>]<bbbbbbbbbb>></bbbbbbbbbb></aaaaaaaaaa>",
    ];
    for text in texts {
        let mut both = Both::new(Limits::default());
        both.check_text(text.as_bytes());
        assert!(both.equal >= 4, "{text} travels as text");
    }
}

/// Fails when what a stream cannot carry is carried anyway.
#[test]
fn what_is_not_utf_8_or_has_odd_end_tags_travels_as_text() {
    let mut both = Both::new(Limits::default());
    let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><aaaaaaaaaa>\xe9</aaaaaaaaaa>";
    let accident = b"<?xml version='1.0' encoding='ISO-8859-1'?><aaaaaaaaaa>\xc3\xa9</aaaaaaaaaa>";
    let ascii = b"<?xml version='1.0' encoding='US-ASCII'?><aaaaaaaaaa>\xc3\xa9</aaaaaaaaaa>";
    let utf16: Vec<u8> = "\u{feff}<aaaaaaaa/>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = b"\xef\xbb\xbf<aaaaaaaaaaaaaaa><bbbbbbb/></aaaaaaaaaaaaaaa>";
    let blank = b"<aaaaaaaaaaaaaaa><bbbbbbb/></aaaaaaaaaaaaaaa >";
    let short = b"<a/>";
    for text in [&latin[..], accident, ascii, &utf16, marked, blank, short, b"", b"no XML at all"] {
        assert_eq!(both.streams(text), Vec::<Vec<u8>>::new(), "{}", text.escape_ascii());
    }
}

fn xml_files(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            xml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "xml") {
            found.push(path);
        }
    }
}

/// Fails when real messages are read otherwise as streams. Looks at up to 300 files below
/// `PATHCAST_SHARED_DATA`; without it, at none.
#[test]
fn real_messages() {
    let Some(directory) = std::env::var_os("PATHCAST_SHARED_DATA") else { return };
    let mut paths = Vec::new();
    xml_files(Path::new(&directory), &mut paths);
    paths.sort();
    let step = (paths.len() / 300).max(1);
    let mut both = Both::new(Limits::default());
    let mut bytes = 0;
    for path in paths.iter().step_by(step) {
        let message = std::fs::read(path).expect("the file is there");
        if message.len() < 1 << 20 {
            both.check_text(&message);
            bytes += message.len();
        }
    }
    println!("{} files, {bytes} bytes, {} equal", paths.len() / step, both.equal);
}
