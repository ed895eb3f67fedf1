/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The switch with programs that measure it. */
#include "switch.bpf.c"
