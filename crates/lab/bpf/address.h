// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Addresses and maps, as all programs declare them.
#pragma once

#include <stdbool.h>

#define FAMILY_V4 1
#define FAMILY_V6 2

// The older way to declare a map, which needs no type information in the object.
struct map {
	__u32 type;
	__u32 key_size;
	__u32 value_size;
	__u32 max_entries;
	__u32 flags;
};

// IPv4 in the first word, the rest zero.
struct address {
	__be32 word[4];
};
