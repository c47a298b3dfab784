/* What libpmemobj/iterator.h declares, and more. */
#ifndef FIRN_COMPAT_LIBPMEMOBJ_ITERATOR_H
#define FIRN_COMPAT_LIBPMEMOBJ_ITERATOR_H

#include "../libpmemobj.h"

#endif
