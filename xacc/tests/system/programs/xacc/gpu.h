/* The scenarios of gpu.c. */
#ifndef GPU_H
#define GPU_H

#include "check.h"
#include "peerway/xacc/acc.h"
#include "peerway/xacc/openacc.h"

void test_gpu_data(void);
void test_gpu_functions(void);
void test_gpu_kernels(void);
void test_gpu_reductions(void);
void test_gpu_values(void);
void test_gpu_reflect(void);
void test_gpu_first_launch(void);
void test_gpu_launches(void);

#endif
