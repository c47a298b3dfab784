/* What libpmemobj/thread.h declares, and more. */
#ifndef FIRN_COMPAT_LIBPMEMOBJ_THREAD_H
#define FIRN_COMPAT_LIBPMEMOBJ_THREAD_H

#include "../libpmemobj.h"

#endif
