/* What libpmemobj/types.h declares, and more. */
#ifndef FIRN_COMPAT_LIBPMEMOBJ_TYPES_H
#define FIRN_COMPAT_LIBPMEMOBJ_TYPES_H

#include "../libpmemobj.h"

#endif
