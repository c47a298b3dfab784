//! Patterns on the machine as programs see it: loads return what was stored, and a power failure leaves what was
//! written back.

use core::hint::black_box;

use firn_machine::description::Description;
use firn_machine::mechanism::{MechanismSpec, NONE};
use firn_machine::{Machine, MachineOptions};
use firn_media::{CheckLookup, Hardware, Memory, Move, Relocate, Space};
use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr, WORD_BYTES};

use super::address::{LARGE, MIB, Mix, STORES};
use super::computer::one_core;
use super::{Goal, Run, Subject, mechanisms};

/// A line is written back after this many accesses.
const WRITE_BACKS: u64 = 32;
/// A line is moved after this many accesses, and software looks up where an object is.
const MOVES: u64 = 32;
const LOOKUPS: u64 = 8;
/// Memory of machines with a mechanism: more than any cache holds, and little enough for the host.
const MEDIUM: u64 = 64 * MIB;
/// One frame in this many moves.
const MOVING: u64 = 16;
/// The least share of the speed without a mechanism that remains with one.
const KEPT: f64 = 0.5;

/// The name of the pattern with which mechanisms are compared.
const CONTROL: &str = "with_none";

pub(super) fn subjects(described: &Description) -> Vec<Subject> {
    let one = one_core(described);
    let of = |make: fn(&Description) -> Run| {
        let one = one.clone();
        move || make(&one)
    };
    let with = |spec: &'static MechanismSpec| {
        let one = one.clone();
        move || exercised(&one, spec)
    };
    let about = |name: &str| format!("mix over 64 MiB with data images, lines moved: {name}");
    let mut all = vec![
        Subject::new(
            "image_mix",
            "the mix, with data images",
            Goal::Least(40.0),
            of(mix),
        ),
        Subject::new(
            "image_random",
            "random over 512 MiB, with data images",
            Goal::Least(4.0),
            of(random),
        )
        .slow(),
        Subject::new(CONTROL, &about("no mechanism"), Goal::None, with(&NONE)),
    ];
    all.extend(mechanisms().map(|spec| {
        let name = format!("with_{}", spec.name);
        let goal = Goal::ShareOf(CONTROL, KEPT);
        Subject::new(&name, &about(spec.name), goal, with(spec))
    }));
    all
}

/// A machine whose memory the host has already supplied.
fn machine(described: &Description, bytes: u64, mechanism: &'static MechanismSpec) -> Machine {
    let machine = Machine::new(MachineOptions {
        mechanism,
        capacity: bytes,
        ..MachineOptions::of(described.clone())
    });
    machine.reserve(VirtAddr(0), bytes).expect("it has room");
    for at in (0..bytes).step_by(FRAME_BYTES as usize).map(VirtAddr) {
        machine.store_u64(at, 1);
        machine.write_back(at, WORD_BYTES);
    }
    machine
}

/// Continues a pattern on a machine, which counts its memory operations.
fn turns(machine: Machine, mut turn: impl FnMut(&Machine, u64) + 'static) -> Run {
    let mut next = 0;
    Box::new(move |count| {
        let before = machine.events();
        let end = next + count;
        (next..end).for_each(|number| turn(&machine, number));
        next = end;
        Ok(machine.events() - before)
    })
}

#[inline(always)]
fn touch(machine: &Machine, turn: u64, at: u64) {
    let at = VirtAddr(at & !(WORD_BYTES - 1));
    match turn % STORES {
        0 => machine.store_u64(at, turn),
        _ => _ = black_box(machine.load_u64(at)),
    }
    if turn.is_multiple_of(WRITE_BACKS) {
        machine.write_back(at, WORD_BYTES);
    }
}

fn mix(described: &Description) -> Run {
    let mut mix = Mix::new(1, LARGE);
    turns(machine(described, LARGE, &NONE), move |machine, turn| {
        touch(machine, turn, mix.next());
    })
}

fn random(described: &Description) -> Run {
    let mut random = fastrand::Rng::with_seed(1);
    turns(machine(described, LARGE, &NONE), move |machine, turn| {
        touch(machine, turn, random.u64(..) & (LARGE - 1));
    })
}

/// The mix of a program that moves lines and looks up where objects are: by the mechanism if it offers that, by loads
/// and stores if it does not.
fn exercised(described: &Description, mechanism: &'static MechanismSpec) -> Run {
    let machine = machine(described, MEDIUM, mechanism);
    if let Some(lookups) = machine.offers().get::<dyn CheckLookup>() {
        let frames = (0..MEDIUM / FRAME_BYTES / 2).step_by(MOVING as usize);
        let place = |frame: u64| VirtAddr(frame * FRAME_BYTES);
        let mut moves = frames.map(|frame| Move {
            from: place(frame),
            to: place(MEDIUM / FRAME_BYTES / 2 + frame),
        });
        lookups.install_lookup(&mut moves);
    }
    let mut mix = Mix::new(1, MEDIUM);
    turns(machine, move |machine, turn| {
        let at = mix.next();
        touch(machine, turn, at);
        let from = VirtAddr(at).line_start();
        let lookups = machine.offers().get::<dyn CheckLookup>();
        if let Some(lookups) = lookups.filter(|_| turn.is_multiple_of(LOOKUPS)) {
            _ = black_box(lookups.check_lookup(from));
        }
        if turn.is_multiple_of(MOVES) {
            let to = VirtAddr(mix.next()).line_start();
            move_line(machine, from, to);
            machine.write_back(to, LINE_BYTES);
        }
    })
}

fn move_line(machine: &Machine, from: VirtAddr, to: VirtAddr) {
    if let Some(unit) = machine.offers().get::<dyn Relocate>() {
        return unit.relocate(from, to, LINE_BYTES);
    }
    let mut line = [0; LINE_BYTES as usize];
    machine.load_bytes(from, &mut line);
    machine.store_bytes(to, &line);
}
