/* Stands here so that a program does not find libpmemobj's own header in its place. */
#error "libpmemobj/action_base.h: Reserving and publishing are not offered yet; docs/pmemobj.md lists what is missing"
