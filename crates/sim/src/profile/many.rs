//! Worlds in which requests are about many keys at once.

use super::Draw;
use crate::options::Options;

impl Draw {
    /// Sub-requests and replies get lost, doubled and overtaken, while chains change.
    pub(super) fn many(&mut self, options: &mut Options) {
        self.network(options);
        options.nodes = self.small(2, 5);
        options.replicas = u8::try_from(self.small(1, 3).min(options.nodes)).expect("at most 3");
        options.partitions = self.pick(&[3, 5, 8]);
        options.load.many_percent = self.pick(&[30, 60]);
        options.load.in_flight = self.pick(&[1, 3]);
        options.load.think = self.ms(&[40, 80]);
        options.span = self.ms(&[2_000, 3_000]);
        options.links.duplicate_permille = self.pick(&[50, 200, 300]);
        options.faults.crash_every = self.ms(&[0, 600, 1_500]);
        options.faults.amnesia_percent = self.pick(&[0, 30]);
        options.faults.cut_every = self.ms(&[0, 0, 800]);
        options.faults.operator_every = self.ms(&[0, 0, 600]);
        options.faults.hot_every = self.ms(&[0, 0, 300]);
        options.load.assisted = self.0.chance(1, 2);
        options.load.by_hints = options.load.assisted && self.0.chance(2, 3);
    }

    /// Keys that are read and written alone and together, most of them hot, while nodes and chains
    /// change: what is seen of one key then tells what must be seen of another.
    pub(super) fn batches(&mut self, options: &mut Options) {
        if self.0.chance(1, 3) {
            self.network(options);
        } else {
            self.some_noise(options);
        }
        options.load.batch_percent = self.pick(&[10, 30, 60]);
        options.load.clients = self.pick(&[2, 4, 6]);
        options.load.in_flight = self.pick(&[1, 3, 8]);
        options.load.think = self.ms(&[3, 6, 12, 25]);
        options.load.blind = self.0.chance(1, 2);
        options.span = self.ms(&[2_000, 3_000]);
        options.partitions = self.pick(&[1, 3]);
        options.hot = self.hot_policy();
        options.faults.hot_every = self.ms(&[0, 20, 60, 300]);
        let every = &[0, 0, 600, 1_500];
        options.faults.crash_every = self.ms(every);
        options.faults.amnesia_percent = self.pick(&[0, 30]);
        options.faults.power_cut_every = self.ms(&[0, 0, 0, 1_500]);
        options.faults.operator_every = self.ms(every);
        options.faults.switch_every = self.ms(every);
        options.faults.cut_every = self.ms(every);
        options.faults.deaf_every = self.ms(every);
        options.faults.client_every = self.ms(&[0, 0, 500]);
    }
}
