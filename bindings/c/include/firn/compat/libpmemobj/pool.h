/* What libpmemobj/pool.h declares, and more. */
#ifndef FIRN_COMPAT_LIBPMEMOBJ_POOL_H
#define FIRN_COMPAT_LIBPMEMOBJ_POOL_H

#include "../libpmemobj.h"

#endif
