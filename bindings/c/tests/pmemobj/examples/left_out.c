/*
 * Kinds of maps that PMDK's program names and that need what docs/pmemobj.md says is missing.
 */
#include "map_hashmap_atomic.h"
#include "map_hashmap_rp.h"

struct map_ops hashmap_atomic_ops, hashmap_rp_ops;
