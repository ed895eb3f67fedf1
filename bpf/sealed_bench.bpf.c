/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs that measure the switch, for the one whose packets are in envelopes. */
#define KW_SEALED
#include "bench.bpf.c"
