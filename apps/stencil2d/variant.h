// What all variants do: take the field some steps further, and time parts of a step by themselves.
#ifndef STENCIL2D_VARIANT_H
#define STENCIL2D_VARIANT_H

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "device.h"
#include "group.h"
#include "options.h"

namespace stencil {

/// What a variant works on. Step n reads field[n % 2] and writes field[(n + 1) % 2].
struct Problem {
  const Options& options;
  const std::string& variant;
  const Lattice& lattice;
  Group& group;
  Device& device;
  double* field[2];
};

/// Why a variant cannot do what was asked. All ranks come to it alike, before they do anything together.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Variant {
 public:
  virtual ~Variant() = default;

  /// Does `steps` steps, a multiple of `batch`, from the field in field[0]. Returns the ns of each batch.
  virtual std::vector<double> run(uint64_t steps, uint64_t batch) = 0;

  /// The ns of one exchange, done `times` times back to back with nothing else; nothing where there is no
  /// such thing.
  virtual std::optional<double> exchange_alone(uint64_t times) = 0;
};

/// The times between each two marks that follow one another.
inline std::vector<double> differences(const std::vector<double>& marks) {
  std::vector<double> all;
  for (size_t i = 1; i < marks.size(); ++i) all.push_back(marks[i] - marks[i - 1]);
  return all;
}

}  // namespace stencil

#endif
