/* link_conformance.h - what every link must do, run over each of them. */
#ifndef TESTS_LIB_LINK_CONFORMANCE_H
#define TESTS_LIB_LINK_CONFORMANCE_H

#include "lib/link_rig.h"

/* All cases that these links have, at most 4 links; as cmocka's run of a group. */
int conform(const struct sl_link *const *links, size_t n);

#endif
