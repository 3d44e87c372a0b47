/* The part of MPI that XcalableMP programs use beside directives: the time, and the rank of this process.
 * `peerway cc` uses this file only if it finds no other mpi.h; calling a function that it lacks is a
 * compile-time error. With CC=mpicc a program has a whole MPI, which it must itself start by MPI_Init. */
#ifndef PEERWAY_XACC_MPI_H
#define PEERWAY_XACC_MPI_H

#include <stddef.h> /* no other header: programs may use names such as index and link themselves */

#ifdef __cplusplus
#include <unistd.h>

#include <cstdlib>
extern "C" {
#else
int gethostname(char* name, size_t length);
void exit(int status);
#endif

#define MPI_VERSION 3
#define MPI_SUBVERSION 1
#define MPI_SUCCESS 0
#define MPI_MAX_PROCESSOR_NAME 256
#define MPI_MAX_ERROR_STRING 256

typedef long MPI_Comm; /* 0: all processes; else their number, and this process's number among them */
typedef int MPI_Datatype;
typedef int MPI_Op;
typedef int MPI_Request;
typedef struct MPI_Status {
  int MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_Status;
#define MPI_COMM_WORLD ((MPI_Comm)0)

int xmp_node_num(void);
int xmp_num_nodes(void);
int xmp_all_node_num(void);
int xmp_all_num_nodes(void);
double xmp_wtime(void);
double xmp_wtick(void);

static inline int MPI_Init(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  return MPI_SUCCESS; /* the processes exist before main */
}
static inline int MPI_Initialized(int* flag) {
  *flag = 1;
  return MPI_SUCCESS;
}
static inline int MPI_Finalize(void) { return MPI_SUCCESS; }
static inline int MPI_Abort(MPI_Comm comm, int status) {
  (void)comm;
  exit(status);
}
/* XcalableMP beside MPI: both are initialised before main. */
static inline void xmp_init(MPI_Comm comm) { (void)comm; }
static inline void xmp_finalize(void) {}
static inline void xmp_init_mpi(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
}
static inline void xmp_finalize_mpi(void) {}
static inline MPI_Comm xmp_get_mpi_comm(void) { return ((long)xmp_num_nodes() << 32) | (xmp_node_num() - 1); }

static inline double MPI_Wtime(void) { return xmp_wtime(); }
static inline double MPI_Wtick(void) { return xmp_wtick(); }
static inline int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  *rank = comm == MPI_COMM_WORLD ? xmp_all_node_num() - 1 : (int)(comm & 0x7fffffff);
  return MPI_SUCCESS;
}
static inline int MPI_Comm_size(MPI_Comm comm, int* size) {
  *size = comm == MPI_COMM_WORLD ? xmp_all_num_nodes() : (int)(comm >> 32);
  return MPI_SUCCESS;
}
static inline int MPI_Get_processor_name(char* name, int* length) {
  if (gethostname(name, MPI_MAX_PROCESSOR_NAME) != 0) __builtin_strcpy(name, "unknown");
  name[MPI_MAX_PROCESSOR_NAME - 1] = 0;
  *length = (int)__builtin_strlen(name);
  return MPI_SUCCESS;
}

#define PWX_NO_MPI(name)                                                                                     \
  int name() __attribute__((error(#name " is of a whole MPI, and Peerway's mpi.h has only the time and the " \
                                        "process; compile with CC=mpicc, or communicate by directives")));
#ifndef __clang__
PWX_NO_MPI(MPI_Send)
PWX_NO_MPI(MPI_Recv)
PWX_NO_MPI(MPI_Isend)
PWX_NO_MPI(MPI_Irecv)
PWX_NO_MPI(MPI_Sendrecv)
PWX_NO_MPI(MPI_Wait)
PWX_NO_MPI(MPI_Waitall)
PWX_NO_MPI(MPI_Barrier)
PWX_NO_MPI(MPI_Bcast)
PWX_NO_MPI(MPI_Reduce)
PWX_NO_MPI(MPI_Allreduce)
PWX_NO_MPI(MPI_Gather)
PWX_NO_MPI(MPI_Allgather)
PWX_NO_MPI(MPI_Scatter)
PWX_NO_MPI(MPI_Alltoall)
PWX_NO_MPI(MPI_Comm_split)
PWX_NO_MPI(MPI_Comm_dup)
#endif
#undef PWX_NO_MPI

#ifdef __cplusplus
}
#endif
#endif
