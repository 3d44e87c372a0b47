/* Shared by the parts of the test program. A check that fails is reported and counted. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <xmp.h>

extern int wrong;
#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "%s:%d: not so on node %d: %s\n", __FILE__, __LINE__, xmp_all_node_num(), #condition); \
      wrong++;                                                                                               \
    }                                                                                                        \
  } while (0)

void mapping(void);
void communication(void);
void compute(void);
void clauses(void);
void data(void);
void operators(void);
void between(void);
void declarators(void);
void intrinsics(void);
/* Not every compiler can make these. */
__attribute__((weak)) void own_of_threads(void);
__attribute__((weak)) void gmoves(void);
__attribute__((weak)) void newer(void);
__attribute__((weak)) void data_newer(void);

#endif
