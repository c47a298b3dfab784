/* What a program includes that was written for libpmemobj, with -I<prefix>/include/firn/compat. */
#ifndef FIRN_COMPAT_LIBPMEMOBJ_H
#define FIRN_COMPAT_LIBPMEMOBJ_H

#include "../pmemobj.h"

#endif
