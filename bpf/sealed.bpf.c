/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The switch for a network that is not to be trusted: each packet is in an envelope. */
#define KW_SEALED
#include "switch.bpf.c"
