#include "spoil.h"

#include <openacc.h>

void spoil(const double* element) {
  double* const host = (double*)element;
  *host = -1;
  if (acc_is_present(host, sizeof *host)) acc_memcpy_to_device(acc_deviceptr(host), host, sizeof *host);
}

double on_device(const double* element) {
  double value = *element;
  if (acc_is_present((void*)element, sizeof value))
    acc_memcpy_from_device(&value, acc_deviceptr((void*)element), sizeof value);
  return value;
}
