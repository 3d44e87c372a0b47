/* A team from an MPI communicator, for programs that have one. Header only: Peerway itself knows no MPI, and
 * the program is compiled with its own. */
#ifndef PEERWAY_PEERWAY_MPI_H
#define PEERWAY_PEERWAY_MPI_H

#include <mpi.h>

#include "peerway/peerway.h"

static int pw_mpi_broadcast_(void* user, void* data, size_t bytes) {
  return MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, *(MPI_Comm*)user);
}

/* Collective over `communicator`, which is used during the call only. The team's ranks are the
 * communicator's. */
static inline pw_status pw_team_from_mpi(MPI_Comm communicator, pw_team** team) {
  int rank = 0, size = 0;
  if (MPI_Comm_rank(communicator, &rank) != MPI_SUCCESS || MPI_Comm_size(communicator, &size) != MPI_SUCCESS)
    return PW_INVALID_ARGUMENT;
  return pw_team_create(rank, size, pw_mpi_broadcast_, &communicator, team);
}

#endif
