/* The exchange of a halo by MPI, as a careful program does it: a receive and a send posted for every face,
 * then one wait; the faces as vector datatypes ("openmpi"), or packed and unpacked by one kernel (or loop)
 * for all faces ("openmpi/pack"). C11. */
#ifndef PEERS_OPENMPI_HALO_H
#define PEERS_OPENMPI_HALO_H

#include <mpi.h>

#include "halo.h"
#include "memory.h"

/* What one phase exchanges: all faces at once, or with corners those of one dimension. */
typedef struct halo_phase {
  face_list out, in;
  int to[FACES_MOST], from[FACES_MOST], out_tag[FACES_MOST], in_tag[FACES_MOST];
  MPI_Datatype out_type[FACES_MOST], in_type[FACES_MOST];
} halo_phase;

typedef struct mpi_halo {
  halo form;
  int phases, packs;
  halo_phase phase[HALO_MOST_DIMS];
  size_t bytes;    /* of the array with its halo */
  void* packed[2]; /* outgoing, incoming */
} mpi_halo;

/* ---- making it ready --------------------------------------------------------------------------- */

static inline MPI_Datatype halo_type(const face* f) {
  size_t all = f->block_bytes;
  for (unsigned d = 0; d < f->dims; ++d) all |= f->stride[d];
  MPI_Datatype type, element = all % 8 ? MPI_BYTE : MPI_DOUBLE;
  size_t width = all % 8 ? 1 : 8;
  int d = (int)f->dims - 1, length = (int)(f->block_bytes / width);
  if (d < 0)
    MPI_Type_contiguous(length, element, &type);
  else
    MPI_Type_vector((int)f->count[d], length, (int)(f->stride[d] / width), element, &type);
  for (--d; d >= 0; --d) {
    MPI_Datatype inner = type;
    MPI_Type_create_hvector((int)f->count[d], 1, (MPI_Aint)f->stride[d], inner, &type);
    MPI_Type_free(&inner);
  }
  if (MPI_Type_commit(&type) != MPI_SUCCESS) die("MPI_Type_commit of a face failed");
  return type;
}

static inline void halo_add(const face* f, int rank, int tag, face_list* list, int* ranks, int* tags,
                            MPI_Datatype* types, size_t* packed) {
  unsigned i = list->n++;
  list->of[i] = *f;
  list->of[i].packed = *packed;
  *packed += (face_bytes(f) + 255) / 256 * 256;
  ranks[i] = rank;
  tags[i] = tag;
  types[i] = halo_type(f);
}

/* A face's tag tells its dimension and the way it travels, so that two faces between one pair stay apart. */
static inline void halo_phase_add(mpi_halo* h, int rank, int dim, size_t* sent, size_t* received) {
  halo_phase* p = &h->phase[h->form.corners ? dim : 0];
  for (int side = BELOW; side <= ABOVE; ++side) {
    int neighbour = halo_neighbour(&h->form, rank, dim, side);
    face out = halo_face(&h->form, dim, side, 1), in = halo_face(&h->form, dim, side, 0);
    if (neighbour < 0) continue;
    if (face_bytes(&out))
      halo_add(&out, neighbour, 2 * dim + side, &p->out, p->to, p->out_tag, p->out_type, sent);
    if (face_bytes(&in))
      halo_add(&in, neighbour, 2 * dim + !side, &p->in, p->from, p->in_tag, p->in_type, received);
  }
}

static inline void mpi_halo_open(mpi_halo* h, memory* m, const char* label, int rank, int packs) {
  size_t sent = 0, received = 0;
  memset(h, 0, sizeof *h);
  h->form = parse_halo(label);
  h->packs = packs;
  h->phases = h->form.corners ? h->form.dims : 1;
  h->bytes = halo_elements(&h->form) * h->form.element;
  for (int d = 0; d < h->form.dims; ++d) halo_phase_add(h, rank, d, &sent, &received);
  h->packed[0] = packs ? memory_allocate(m, sent + 1) : NULL;
  h->packed[1] = packs ? memory_allocate(m, received + 1) : NULL;
}

static inline void mpi_halo_close(mpi_halo* h, memory* m) {
  for (int i = 0; i < h->phases; ++i) {
    for (unsigned f = 0; f < h->phase[i].out.n; ++f) MPI_Type_free(&h->phase[i].out_type[f]);
    for (unsigned f = 0; f < h->phase[i].in.n; ++f) MPI_Type_free(&h->phase[i].in_type[f]);
  }
  for (int i = 0; h->packs && i < 2; ++i) memory_release(m, h->packed[i]);
}

/* ---- one exchange ------------------------------------------------------------------------------ */

static inline void halo_post(const mpi_halo* h, halo_phase* p, char* array, int outgoing, unsigned i,
                             MPI_Request* request) {
  const face* f = outgoing ? &p->out.of[i] : &p->in.of[i];
  char* at = h->packs ? (char*)h->packed[!outgoing] + f->packed : array + f->offset;
  int count = h->packs ? (int)face_bytes(f) : 1;
  MPI_Datatype type = h->packs ? MPI_BYTE : outgoing ? p->out_type[i] : p->in_type[i];
  if (outgoing)
    MPI_Isend(at, count, type, p->to[i], p->out_tag[i], MPI_COMM_WORLD, request);
  else
    MPI_Irecv(at, count, type, p->from[i], p->in_tag[i], MPI_COMM_WORLD, request);
}

static inline void mpi_halo_exchange(mpi_halo* h, memory* m, void* array) {
  MPI_Request requests[2 * FACES_MOST];
  for (int i = 0; i < h->phases; ++i) {
    halo_phase* p = &h->phase[i];
    int posted = 0;
    for (unsigned f = 0; f < p->in.n; ++f) halo_post(h, p, (char*)array, 0, f, &requests[posted++]);
    if (h->packs) memory_copy_faces(m, array, h->packed[0], &p->out, 0);
    for (unsigned f = 0; f < p->out.n; ++f) halo_post(h, p, (char*)array, 1, f, &requests[posted++]);
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    if (h->packs) memory_copy_faces(m, array, h->packed[1], &p->in, 1);
  }
}

#endif
