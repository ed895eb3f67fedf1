/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * SipHash (Aumasson and Bernstein, INDOCRYPT 2012), for messages of whole words. A message of bytes
 * is read in words of 8, lowest byte first, as this machine has them.
 *
 * The state stays in registers: nothing here takes its address once it is inlined. There is no
 * instruction that rotates.
 */
#ifndef KEYWAY_SIPHASH_H
#define KEYWAY_SIPHASH_H

#include "parse.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words are read as the machine has them"
#endif

struct kw_sip {
	__u64 v0, v1, v2, v3;
};

/*
 * A round, written out: the compiler would copy one register in four once more. What is rotated is
 * copied, shifted both ways and put together.
 */
static __always_inline void kw_sip_round(struct kw_sip *s)
{
	__u64 copy;

	asm("%[v0] += %[v1]\n\t"
	    "%[v2] += %[v3]\n\t"
	    "%[copy] = %[v1]\n\t"
	    "%[copy] >>= 51\n\t"
	    "%[v1] <<= 13\n\t"
	    "%[v1] |= %[copy]\n\t"
	    "%[v1] ^= %[v0]\n\t"
	    "%[copy] = %[v3]\n\t"
	    "%[copy] >>= 48\n\t"
	    "%[v3] <<= 16\n\t"
	    "%[v3] |= %[copy]\n\t"
	    "%[v3] ^= %[v2]\n\t"
	    "%[copy] = %[v0]\n\t"
	    "%[copy] >>= 32\n\t"
	    "%[v0] <<= 32\n\t"
	    "%[v0] |= %[copy]\n\t"
	    "%[v0] += %[v3]\n\t"
	    "%[v2] += %[v1]\n\t"
	    "%[copy] = %[v3]\n\t"
	    "%[copy] >>= 43\n\t"
	    "%[v3] <<= 21\n\t"
	    "%[v3] |= %[copy]\n\t"
	    "%[v3] ^= %[v0]\n\t"
	    "%[copy] = %[v1]\n\t"
	    "%[copy] >>= 47\n\t"
	    "%[v1] <<= 17\n\t"
	    "%[v1] |= %[copy]\n\t"
	    "%[v1] ^= %[v2]\n\t"
	    "%[copy] = %[v2]\n\t"
	    "%[copy] >>= 32\n\t"
	    "%[v2] <<= 32\n\t"
	    "%[v2] |= %[copy]"
	    : [v0] "+r"(s->v0), [v1] "+r"(s->v1), [v2] "+r"(s->v2), [v3] "+r"(s->v3),
	      [copy] "=&r"(copy));
}

static __always_inline struct kw_sip kw_sip(__u64 key0, __u64 key1)
{
	struct kw_sip s = {
		.v0 = key0 ^ 0x736f6d6570736575ULL,
		.v1 = key1 ^ 0x646f72616e646f6dULL,
		.v2 = key0 ^ 0x6c7967656e657261ULL,
		.v3 = key1 ^ 0x7465646279746573ULL,
	};

	return s;
}

/* What a message of so many bytes, all of them in words, ends with. */
static __always_inline __u64 kw_sip_length(__u64 bytes)
{
	return bytes << 56;
}

/* SipHash-1-3: takes a word in. */
static __always_inline void kw_sip13_word(struct kw_sip *s, __u64 word)
{
	s->v3 ^= word;
	kw_sip_round(s);
	s->v0 ^= word;
}

static __always_inline __u64 kw_sip13_end(struct kw_sip *s, __u64 bytes)
{
	kw_sip13_word(s, kw_sip_length(bytes));
	s->v2 ^= 0xff;
	kw_sip_round(s);
	kw_sip_round(s);
	kw_sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* SipHash-2-4, likewise. */
static __always_inline void kw_sip24_word(struct kw_sip *s, __u64 word)
{
	s->v3 ^= word;
	kw_sip_round(s);
	kw_sip_round(s);
	s->v0 ^= word;
}

static __always_inline __u64 kw_sip24_rounds(struct kw_sip *s)
{
	kw_sip_round(s);
	kw_sip_round(s);
	kw_sip_round(s);
	kw_sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* SipHash-2-4 of three words. */
static __noinline __u64 kw_sip24(const __u64 *key, __u64 first, __u64 second, __u64 third)
{
	struct kw_sip s = kw_sip(key[0], key[1]);

	kw_sip24_word(&s, first);
	kw_sip24_word(&s, second);
	kw_sip24_word(&s, third);
	kw_sip24_word(&s, kw_sip_length(3 * sizeof(__u64)));
	s.v2 ^= 0xff;
	return kw_sip24_rounds(&s);
}

/* SipHash-2-4 of one word, with two words that come of it. */
static __noinline void kw_sip24_128(const __u64 *key, __u64 word, __u64 *out)
{
	struct kw_sip s = kw_sip(key[0], key[1]);

	s.v1 ^= 0xee;
	kw_sip24_word(&s, word);
	kw_sip24_word(&s, kw_sip_length(sizeof(__u64)));
	s.v2 ^= 0xee;
	out[0] = kw_sip24_rounds(&s);
	s.v1 ^= 0xdd;
	out[1] = kw_sip24_rounds(&s);
}

#endif /* KEYWAY_SIPHASH_H */
