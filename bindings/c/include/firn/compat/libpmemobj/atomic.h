/* What libpmemobj/atomic.h declares, and more. */
#ifndef FIRN_COMPAT_LIBPMEMOBJ_ATOMIC_H
#define FIRN_COMPAT_LIBPMEMOBJ_ATOMIC_H

#include "../libpmemobj.h"

#endif
