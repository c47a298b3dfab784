//! Does a picture show what the snapshot says?

use firn_heap::FrameContent;
use tiny_skia::Pixmap;

use super::super::scene::Mark;
use super::super::square::LEVELS;
use super::*;

const OWN_CHUNKS: u64 = 7;

/// A pool with all kinds of pages in its data chunks.
fn occupancy(chunks: u64, exact: bool) -> Occupancy {
    let frame = |number: u64| {
        let live_bytes = exact.then_some((number * 37 % 4097) as u16);
        let (content, data) = match number % 7 {
            _ if number / FRAMES_PER_CHUNK < OWN_CHUNKS => (FrameContent::Table, false),
            0 => (FrameContent::Free, true),
            1 => (FrameContent::Free, false),
            2 => (FrameContent::Log, true),
            3 => (FrameContent::Large { live_bytes }, true),
            4 if exact => (
                FrameContent::Slots {
                    live_bytes: Some(0),
                },
                true,
            ),
            _ => (FrameContent::Slots { live_bytes }, true),
        };
        FrameOccupancy {
            content,
            has_data: Some(data),
        }
    };
    Occupancy {
        frames: (0..chunks * FRAMES_PER_CHUNK).map(frame).collect(),
        exact,
        objects: 12_345,
        live_bytes: 34 << 20,
        footprint_4k_bytes: 40 << 20,
        footprint_2m_bytes: 50 << 20,
    }
}

/// Every square that there is.
fn all_squares() -> Vec<Square> {
    let mut all = vec![
        Square::Empty,
        Square::FreeWithData,
        Square::Own,
        Square::Unoccupied,
        Square::Unknown,
    ];
    all.extend((0..LEVELS as u8).map(Square::Level));
    all
}

fn panel<'a>(heading: &'a str, occupancy: &'a Occupancy) -> Panel<'a> {
    Panel { heading, occupancy }
}

/// The number of pages that count as each kind of square.
fn counted(occupancy: &Occupancy) -> BTreeMap<Square, usize> {
    let data = &occupancy.frames[(OWN_CHUNKS * FRAMES_PER_CHUNK) as usize..];
    let mut counted = BTreeMap::new();
    for frame in data {
        *counted.entry(Square::of(&[*frame])).or_default() += 1;
    }
    counted
}

#[test]
fn there_is_a_square_of_its_colour_for_each_page() {
    for exact in [true, false] {
        let (before, after) = (occupancy(12, exact), occupancy(9, true));
        let picture = Picture::draw(&[panel("before", &before), panel("after", &after)]);
        assert_eq!(picture.pages_a_square(), 1);
        let (before, after) = (counted(&before), counted(&after));
        assert!(before.len() >= 4 && after.len() > 10);
        for square in all_squares() {
            let of = |pool: &BTreeMap<Square, usize>| pool.get(&square).copied().unwrap_or(0);
            let pages = of(&before) + of(&after);
            // The ramp shows every step, the legend every other kind that occurs.
            let in_legend = matches!(square, Square::Level(_)) || pages > 0;
            let drawn: usize = picture
                .scene
                .marks
                .iter()
                .map(|mark| match mark {
                    Mark::Rects {
                        name,
                        colour,
                        rects,
                    } if *name == square.name() && *colour == square.colour() => rects.len(),
                    _ => 0,
                })
                .sum();
            assert_eq!(drawn, pages + usize::from(in_legend), "{square:?}");
        }
    }
}

#[test]
fn svg_and_png_show_the_same_squares() {
    let pool = occupancy(8, true);
    let picture = Picture::draw(&[panel("a & b.firn", &pool)]);
    let (svg, png) = (picture.svg(), picture.png().unwrap());
    let pixels = Pixmap::decode_png(&png).unwrap();
    assert!(svg.contains("a &amp; b.firn"));
    assert!(svg.contains(&format!("width=\"{}\"", pixels.width())));
    for mark in &picture.scene.marks {
        let Mark::Rects {
            name,
            colour: Colour(red, green, blue),
            rects,
        } = mark
        else {
            continue;
        };
        let path = format!("class=\"{name}\" d=\"M{} {}h", rects[0].x, rects[0].y);
        assert!(svg.contains(&path), "{path}");
        for rect in rects.iter().filter(|_| *name == "live") {
            let middle = pixels.pixel(rect.x + rect.width / 2, rect.y + rect.height / 2);
            let middle = middle.unwrap();
            assert_eq!(
                (middle.red(), middle.green(), middle.blue()),
                (*red, *green, *blue)
            );
        }
    }
}

#[test]
fn pictures_stay_small() {
    for chunks in [0, 8, 64, 71, 400, 2000] {
        let pool = occupancy(chunks, chunks % 2 == 0);
        for panels in [
            &[panel("pool", &pool)][..],
            &[panel("before", &pool), panel("after", &pool)],
        ] {
            let picture = Picture::draw(panels);
            let scene = &picture.scene;
            assert!(scene.width <= MAX_SIDE && scene.height <= MAX_SIDE);
            assert!(picture.svg().len() < 3 << 20, "{chunks} chunks");
            let inside = |rect: &Rect| {
                rect.x + rect.width <= scene.width && rect.y + rect.height <= scene.height
            };
            let mut rects = scene.marks.iter().filter_map(|mark| match mark {
                Mark::Rects { rects, .. } => Some(rects),
                Mark::Text(_) => None,
            });
            assert!(rects.all(|rects| rects.iter().all(inside)));
        }
    }
}

#[test]
fn long_names_are_cut_and_nothing_is_escaped_by_hand() {
    let pool = occupancy(8, true);
    let name = "ü<&>".repeat(40);
    let svg = Picture::draw(&[panel(&name, &pool)]).svg();
    assert!(svg.contains("ü&lt;&amp;&gt;") && svg.contains('…'));
    assert!(!svg.contains("ü<"));
}
