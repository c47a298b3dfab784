//! How far a collector in the background keeps FFCCD's phases from fragmenting a pool.

use firn_tools::Progress;
use firn_workloads::Shape;

use super::super::clock::Times;
use super::super::figure::{Compaction, Figure, Subject};
use super::super::phases::{Footprint, Gets, NORMAL, PHASES, RELAXED, Run, Setting, WITHOUT};
use super::super::{BenchError, Options};
use super::{MOST_PASSES, SYSTEM};

const HOW: &str = "after inserting all: 80 % deleted, inserted, deleted, at random, one a transaction, \
                   one thread of the program; an operation is one of these; the footprint is looked \
                   at 200 times a phase, the ratio_max where no collection is under way";

/// The baseline first, then FFCCD's normal and relaxed parameters.
pub(super) const SETTINGS: [Setting; 3] = [WITHOUT, NORMAL, RELAXED];
pub(super) const SHAPES: [Shape; 2] = [Shape::Map, Shape::Refs];

/// The name of a figure.
pub(super) fn name(shape: Shape, setting: &Setting) -> String {
    format!("phases_{}_{}", shape.name(), setting.name)
}

/// Names of all figures.
pub(super) fn names() -> impl Iterator<Item = String> {
    let named = |shape| SETTINGS.iter().map(move |setting| name(shape, setting));
    SHAPES.into_iter().flat_map(named)
}

/// Measures the phases of the selected shapes, with all settings in turns: without the baseline there is no reduction.
pub(super) fn measure(
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    let wanted = |shape: Shape| {
        let mut names = SETTINGS.iter().map(|setting| name(shape, setting));
        names.any(|name| options.wants(super::SECTION, &name))
    };
    let shapes: Vec<Shape> = SHAPES.into_iter().filter(|shape| wanted(*shape)).collect();
    let passes = options.blocks.min(MOST_PASSES);
    let mut figures = Vec::new();
    let steps = passes * shapes.len() * SETTINGS.len();
    progress.begin("phases with a collector", Some(steps as u64));
    for shape in shapes {
        let mut runs: [Vec<(Times, Compaction)>; SETTINGS.len()] = Default::default();
        for _ in 0..passes {
            let mut baseline = None;
            for (setting, runs) in SETTINGS.iter().zip(&mut runs) {
                let run = Run::new(options, shape, setting, Gets::None)?;
                let baseline = baseline.get_or_insert(run.footprints);
                let times = run
                    .phases
                    .into_iter()
                    .fold(Times::default(), |mut sum, phase| {
                        sum += phase;
                        sum
                    });
                runs.push((times / PHASES as f64, compaction(run, baseline)));
                progress.advance(1);
            }
        }
        let all = SETTINGS.iter().zip(&runs);
        figures.extend(all.map(|(setting, runs)| figure(options, shape, setting, runs)));
    }
    progress.end();
    Ok(figures)
}

/// The result, with the reduction relative to a run without a collector.
fn compaction(run: Run, baseline: &[Footprint; PHASES]) -> Compaction {
    let phases = run.footprints.iter().zip(baseline);
    // FFCCD's equation 1, phase by phase.
    let reductions = phases.map(|(with, without)| {
        (without.pages - with.pages) / (without.pages - without.live).max(1.0)
    });
    Compaction {
        reduction: Some(reductions.sum::<f64>() / PHASES as f64),
        ..run.seen
    }
}

fn figure(
    options: &Options,
    shape: Shape,
    setting: &Setting,
    runs: &[(Times, Compaction)],
) -> Figure {
    let how = match setting.ratios {
        Some((trigger, target)) => format!("trigger {trigger}, target {target}; {HOW}"),
        None => format!("without a collector; {HOW}"),
    };
    let subject = Subject {
        system: SYSTEM,
        structure: shape.name(),
        operation: &name(shape, setting),
        n: options.entries,
        threads: 1,
        how: &how,
    };
    let times: Vec<Times> = runs.iter().map(|(times, _)| *times).collect();
    Figure {
        compaction: Compaction::median(runs.iter().map(|(_, compaction)| compaction)),
        ..Figure::of(subject, &times)
    }
}
