//! Do FFCCD's corrected schemes pass its own test (section 7.1): a thousand injections in each of 26 settings?

use firn_lab::crash::{Campaign, Mode, settings};
use firn_tools::Silent;

const INJECTIONS: u64 = 1000;

#[test]
fn a_thousand_injections_in_each_setting_of_ffccd_find_nothing() {
    let campaign = Campaign {
        settings: settings("ffccd-7.1").unwrap(),
        mode: Mode::injections(INJECTIONS),
        ..Campaign::default()
    };
    let report = campaign.run(&mut Silent).unwrap();
    assert!(report.ok, "{:?}", report.findings);
    assert_eq!(report.rows.len(), 26);
    for row in &report.rows {
        assert_eq!(row.injections, INJECTIONS);
        // A run has had a whole cycle, and the program has used a page that it released; a few runs give up before
        // that.
        assert!(row.cycles >= row.executions, "{row:?}");
        assert!(row.whole_runs * 20 >= row.executions * 19, "{row:?}");
        assert!(row.in_cycles > INJECTIONS / 20, "{row:?}");
    }
}
