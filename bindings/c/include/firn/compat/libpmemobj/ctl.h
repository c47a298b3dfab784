/* Stands here so that a program does not find libpmemobj's own header in its place. */
#error "libpmemobj/ctl.h: pmemobj_ctl_get and others are not offered yet; docs/pmemobj.md lists what is missing"
