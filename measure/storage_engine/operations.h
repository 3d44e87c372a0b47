// The operations of the program. Each takes its arguments and returns its answer, or throws Failed or Misuse.
#pragma once

#include "words.h"

namespace pw::storage {

Answer write_files(const Words&);
Answer read_files(const Words&);
Answer random_blocks(const Words&);
Answer verify_files(const Words&);
Answer small_files(const Words&);  // create, stat, read, rename and remove

Answer residency(const Words&);  // how much of a file is in this node's page cache
Answer let_go(const Words&);     // asks the kernel to drop one file from it
Answer space(const Words&);      // of the file system below a folder
Answer make_folder(const Words&);
Answer list_folders(const Words&);
Answer remove_folder(const Words&);

}  // namespace pw::storage
