#pragma once
// A safetensors file that is open: its tensors, checked against the file's size, and their elements
// in fp32.
//
// Thread contract: immutable after open; read() may be called from any number of threads.

#include <span>

#include "core/weights/safetensors_header.h"
#include "storage/io/file.h"

namespace sluice::weights {

// The kinds of numbers that weights may have; the others that files may hold are refused by name
// where they are to be weights.
enum class ElementType : std::uint8_t { bf16, fp16, fp32 };

std::int64_t bytes_of(ElementType type);
const char* dtype_name(ElementType type);  // in the file's words: "BF16"

class SafetensorsFile {
 public:
  // Reads the header alone. Errors: those of the file; ErrorCode::corrupt, naming byte or tensor.
  static Result<SafetensorsFile> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }  // by their bytes
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

  // Elements [first, first + out.size()) of the tensor, widened without a loss. Takes no memory
  // beside `out`. Errors: ErrorCode::unsupported for a dtype that is none of ElementType.
  Status read(const StoredTensor& tensor, std::int64_t first, std::span<float> out) const;
  Result<ElementType> type_of(const StoredTensor& tensor) const;

 private:
  SafetensorsFile(io::File file, Header header)
      : file_(std::move(file)), header_(std::move(header)) {}

  io::File file_;
  Header header_;
};

}  // namespace sluice::weights
