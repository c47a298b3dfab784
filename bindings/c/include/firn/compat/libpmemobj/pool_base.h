/* What libpmemobj/pool_base.h declares, and more. */
#ifndef FIRN_COMPAT_LIBPMEMOBJ_POOL_BASE_H
#define FIRN_COMPAT_LIBPMEMOBJ_POOL_BASE_H

#include "../libpmemobj.h"

#endif
