// A program of a file on a GPU: its target for this GPU, weights, kernels, and functions at the
// compiled sizes. Sessions share it. It is changed only under its mutex, at the first run of a
// function.
#pragma once

#include <atomic>
#include <set>

#include "gputensor/blas/libraries/native_products.h"
#include "gputensor/programs/ahead/launches/steps.h"
#include "gputensor/programs/c_library/fault.h"
#include "gputensor/programs/c_library/packed.h"
#include "gputensor/programs/c_library/sha256.h"

namespace gputensor {

// The dtype and shape of an input or output of a function.
struct NativeSpec {
    std::string dtype;
    std::vector<int64_t> shape;

    std::string text() const {
        std::string found = dtype + "[";
        for (size_t i = 0; i < shape.size(); i++) found += (i ? ", " : "") + std::to_string(shape[i]);
        return found + "]";
    }
};

struct NativeType {
    const char* name;
    int code, bits;  // of DLPack
};

inline const NativeType* native_type(const std::string& name) {
    static const NativeType types[] = {
        {"bool", 6, 8},      {"int8", 0, 8},     {"int16", 0, 16},       {"int32", 0, 32},
        {"int64", 0, 64},    {"uint8", 1, 8},    {"uint16", 1, 16},      {"uint32", 1, 32},
        {"uint64", 1, 64},   {"float16", 2, 16}, {"bfloat16", 4, 16},    {"float32", 2, 32},
        {"float64", 2, 64},  {"complex64", 5, 64}, {"complex128", 5, 128},
        {"float8_e4m3", 10, 8}, {"float8_e5m2", 12, 8}};
    for (const NativeType& one : types)
        if (name == one.name) return &one;
    return nullptr;
}

// A launch list with the kernels of its records.
struct NativeList {
    LaunchList list;
    uint64_t scratch_nbytes = 0;
    bool is_read = false, is_loaded = false;
    std::vector<uint64_t> functions;
};

// A weight or state that a function names.
struct NativeFixed {
    bool is_state;
    std::string name;
};

// A function at one size.
struct NativeBinding {
    std::string function;
    std::vector<NativeSpec> inputs, outputs;
    int64_t arena_nbytes = 0;
    const std::vector<NativeFixed>* fixed = nullptr;
    const char* words = nullptr;
    size_t count = 0;
    std::atomic<bool> is_ready{false};
    Steps steps;
};

class NativeProgram {
    MappedFile file;
    PlainEntry program_text;
    std::unique_ptr<Json> json;

public:
    NativeProgram(const std::string& path, const char* weights, int ordinal)
        : file(path), json(read_json()), gpu(ordinal) {
        Json::Value root = json->root();
        Json::Value ahead = root["ahead"];
        if (!ahead)
            throw FileFault("has no launches for GPUs; compile it with --target");
        packed = ahead["packed"];
        read_target(root, ahead);
        read_kernels(ahead["kernels"]);
        if (ahead["condition"])
            condition = ahead["condition"].integer("condition", 0, int64_t(kernels.size()) - 1);
        read_bindings(target["steps"]);
        description = ahead["description"].text();
        read_arrays(root, path, weights);
        upload();
    }
    ~NativeProgram() {
        for (uint64_t module : modules) gpu->module_unload(module);
    }

    // Makes a binding ready to be launched.
    void prepare(NativeBinding& binding) {
        if (binding.is_ready.load(std::memory_order_acquire)) return;
        std::lock_guard<std::mutex> guard(mutex);
        if (binding.is_ready.load(std::memory_order_relaxed)) return;
        std::vector<int64_t> sizes = {binding.arena_nbytes};
        for (const auto* group : {&binding.inputs, &binding.outputs})
            for (const NativeSpec& one : *group) sizes.push_back(nbytes_of(one));
        for (const NativeFixed& one : *binding.fixed)
            sizes.push_back(nbytes_of(one.is_state ? states.at(one.name) : arrays.at(one.name).spec));
        std::vector<int64_t> words(binding.count);
        if (binding.count) memcpy(words.data(), binding.words, binding.count * 8);
        Steps steps;
        bool is_sound = steps.read(words.data(), words.size(), sizes) &&
                        steps.check([&](size_t list, const Reach& reach) {
                            return is_inside(list, reach);
                        });
        if (!is_sound) throw FileFault(binding.function + ": launches outside their memory");
        steps.lists([&](size_t list) { load(list); });
        if (steps.has_conditions() && condition >= 0 && !setter) load_setter();
        binding.steps = std::move(steps);
        binding.is_ready.store(true, std::memory_order_release);
    }

    static int64_t nbytes_of(const NativeSpec& spec) {
        const NativeType* type = native_type(spec.dtype);
        if (!type) throw FileFault("has the unknown dtype " + MappedFile::shown(spec.dtype));
        int64_t count = type->bits / 8;
        for (int64_t extent : spec.shape) {
            if (extent && count > MOST / extent) throw FileFault("has a tensor that is too large");
            count *= extent;
        }
        return count;
    }

    struct Array {
        NativeSpec spec;
        std::string sha256;
        const FileEntry* entry = nullptr;
        uint64_t ptr = 0;
    };

    const Gpu gpu;
    std::map<std::string, Array> arrays;  // weights; first values of states as state.NAME
    std::map<std::string, NativeSpec> states;
    std::vector<std::unique_ptr<NativeBinding>> bindings;
    std::vector<NativeList> lists;
    std::string description;
    uint64_t setter = 0;  // the kernel that sets conditions, for bindings that need it and are ready

private:
    using Reach = std::vector<std::pair<int64_t, int64_t>>;
    static constexpr int64_t MOST = int64_t(1) << 60;
    static constexpr size_t MOST_PROGRAM = 64 << 20, MOST_VALUES = 1 << 23, MOST_AXES = 16;
    static constexpr int64_t MOST_ITEMS = 1 << 20;

    struct Image {
        bool is_cubin;
        int capability;
        std::string entry;
        std::string sha256;
    };
    struct Kernel {
        std::string entry;
        std::vector<Image> images;
        uint64_t function = 0;
        uint32_t allowed = 0;  // dynamic shared memory
    };

    // ---- reading

    static void need(bool is_right, const char* where) {
        if (!is_right) throw FileFault(std::string(where) + ": expected the form of a program file");
    }

    std::unique_ptr<Json> read_json() {
        if (file.metadata["format"] != "gtp")
            throw FileFault("format: got " + MappedFile::shown(file.metadata["format"]) + "; expected 'gtp'");
        std::string version = file.metadata["version"];
        if (version.compare(0, 2, "1.") || version.size() > 6)
            throw FileFault("version: got " + MappedFile::shown(version) + "; expected 1.N");
        const FileEntry& text = file.entry("program");
        need(text.type == "U8" && text.nbytes <= MOST_PROGRAM, "program");
        check_hash("program", {text.data, text.nbytes}, file.metadata["program_sha256"]);
        const std::string& size = file.metadata["program_nbytes"];
        need(size.size() <= 8 && size.find_first_not_of("0123456789") == size.npos, "program_nbytes");
        program_text = PlainEntry("program", text, size.empty() ? 0 : std::stol(size));
        need(program_text.bytes.size() <= MOST_PROGRAM, "program");
        return std::make_unique<Json>(program_text.bytes.data(), program_text.bytes.size(),
                                      MOST_VALUES, 128);
    }

    static void check_hash(const std::string& name, std::string_view bytes, const std::string& wanted) {
        if (Sha256::hex(bytes.data(), bytes.size()) != wanted)
            throw FileFault(name + ": got other bytes; expected those of its SHA-256");
    }

    // An entry, decompressed if necessary, after a check of its hash.
    PlainEntry plain(const std::string& name, const std::string& sha256) const {
        PlainEntry made(name, file.entry(name), packed[name.c_str()]);
        check_hash(name, made.bytes, sha256);
        return made;
    }

    // Selects the target with the facts of this GPU, otherwise the newest one whose kernels it runs.
    void read_target(Json::Value root, Json::Value ahead) {
        std::string names;
        int64_t best = -1;
        size_t chosen = 0, number = 0;
        ahead["targets"].items([&](Json::Value one) {
            int64_t capability = one["capability"].integer("capability", 1, 1000);
            int64_t count = one["multiprocessors"].integer("multiprocessors", 1, 1 << 16);
            int64_t shared = one["shared_nbytes"].integer("shared_nbytes", 1, 1 << 24);
            bool is_same = capability == gpu.capability && count == gpu.multiprocessors &&
                           shared == gpu.shared_nbytes;
            // Kernels rely on the multiprocessors and the shared memory that they were selected for.
            bool runs = capability <= gpu.capability && count <= gpu.multiprocessors &&
                        shared <= gpu.shared_nbytes &&
                        (capability / 10 == gpu.capability / 10 || one["has_ptx"].is_true());
            int64_t rank = is_same ? MOST : runs ? capability : -1;
            if (rank > best) best = rank, chosen = number, target = one;
            names += (number++ ? ", sm_" : "sm_") + std::to_string(capability) + " with " +
                     std::to_string(count) + " multiprocessors";
        });
        if (best < 0)
            throw FileFault("was compiled for " + (names.empty() ? "no GPU" : names) +
                            "; this GPU is " + gpu.name());
        bool has_facts = false;
        root["functions"].each([&](const std::string&, Json::Value function) {
            has_facts |= function["facts"].size() > 0;
        });
        if (has_facts && best != MOST)
            throw FileFault("depends on facts of its GPU, " + names + "; this GPU is " + gpu.name());
        suffix = std::to_string(chosen);
        launches = plain("launches." + suffix, target["sha256"].text());
        Json::Value places = target["lists"];
        need(places.is('{') && places.size() <= size_t(MOST_ITEMS), "lists");
        places.each([&](const std::string&, Json::Value place) {
            list_places.push_back(place_in(place, launches.bytes.size()));
        });
        lists.resize(list_places.size());
    }

    static std::pair<uint64_t, uint64_t> place_in(Json::Value place, uint64_t nbytes) {
        std::vector<Json::Value> ends = place.items();
        need(ends.size() == 2, "a place");
        int64_t first = ends[0].integer("a place", 0, int64_t(nbytes));
        return {uint64_t(first), uint64_t(ends[1].integer("a place", first, int64_t(nbytes)))};
    }

    void read_kernels(Json::Value given) {
        need(given.is('[') && given.size() <= 1 << 16, "kernels");
        given.items([&](Json::Value one) {
            Kernel made;
            made.entry = one["entry"].text();
            need(!made.entry.empty() && made.entry.size() <= 256, "kernels");
            one["images"].each([&](const std::string& name, Json::Value sha256) {
                Image image;
                image.is_cubin = name.compare(0, 3, "sm_") == 0;
                image.capability = atoi(name.c_str() + name.find('_') + 1);
                image.entry = "kernel." + std::to_string(kernels.size()) + "." + name;
                file.entry(image.entry);
                image.sha256 = sha256.text();
                made.images.push_back(image);
            });
            kernels.push_back(made);
        });
    }

    static NativeSpec spec_of(Json::Value dtype, Json::Value shape) {
        NativeSpec made;
        made.dtype = dtype.text();
        need(shape.is('[') && shape.size() <= MOST_AXES, "shape");
        shape.items([&](Json::Value extent) {
            made.shape.push_back(extent.integer("shape", 0, MOST));
        });
        nbytes_of(made);
        return made;
    }

    static std::vector<NativeSpec> specs_of(Json::Value given) {
        std::vector<NativeSpec> found;
        given.items([&](Json::Value one) {
            std::vector<Json::Value> parts = one.items();
            need(parts.size() == 2, "a tensor");
            found.push_back(spec_of(parts[0], parts[1]));
        });
        return found;
    }

    void read_bindings(Json::Value given) {
        if (!given) throw FileFault("has no steps; compile it again with this version");
        steps = plain("steps." + suffix, given["sha256"].text());
        given["fixed"].items([&](Json::Value list) {
            fixed.emplace_back(new std::vector<NativeFixed>);
            list.items([&](Json::Value one) {
                std::vector<Json::Value> parts = one.items();
                need(parts.size() == 2, "fixed");
                fixed.back()->push_back({parts[0].text() == "state", parts[1].text()});
            });
        });
        given["bindings"].items([&](Json::Value one) {
            auto made = std::make_unique<NativeBinding>();
            made->function = one["function"].text();
            made->arena_nbytes = one["arena"].integer("arena", 0, MOST);
            made->inputs = specs_of(one["inputs"]);
            made->outputs = specs_of(one["outputs"]);
            need(!fixed.empty(), "fixed");
            made->fixed = fixed[size_t(one["fixed"].integer("fixed", 0, int64_t(fixed.size()) - 1))].get();
            auto [first, last] = place_in(one["steps"], steps.bytes.size());
            made->words = steps.bytes.data() + first;
            made->count = size_t(last - first) / 8;
            bindings.push_back(std::move(made));
        });
    }

    void read_arrays(Json::Value root, const std::string& path, const char* weights) {
        if (root["prepare"])
            throw FileFault("prepares its weights when it is loaded; save it with prepared=True");
        for (auto& [name, one] : root["weights"].table()) {
            Array made;
            made.spec = spec_of(one["dtype"], one["shape"]);
            made.sha256 = one["sha256"].text();
            arrays.emplace(name, made);
        }
        for (auto& [name, one] : root["states"].table())
            states.emplace(name, spec_of(one["dtype"], one["shape"]));
        std::map<std::string, std::string> names;
        auto tables = root["apart"].table();
        need(tables.size() <= 1, "apart");
        for (auto& [beside, table] : tables) {
            apart = std::make_unique<MappedFile>(weights ? weights : path_beside(path, beside));
            for (auto& [name, entry] : table.table()) names[name] = entry.text();
        }
        if (weights && tables.empty())
            throw FileFault("contains its weights; give no other file of weights");
        for (auto& [name, one] : arrays) {
            auto beside = names.find(name);
            bool is_constant = name.compare(0, 9, "constant.") == 0;
            one.entry = beside != names.end() ? &apart->entry(beside->second)
                                              : &file.entry(is_constant ? name : "weight." + name);
            if (int64_t(one.entry->nbytes) != nbytes_of(one.spec))
                throw FileFault(MappedFile::shown(name) + " has another size than it declares");
            auto state = name.compare(0, 6, "state.") ? states.end() : states.find(name.substr(6));
            if (state != states.end() && nbytes_of(state->second) != nbytes_of(one.spec))
                throw FileFault(MappedFile::shown(name) + " has another size than its state");
        }
        for (auto& list : fixed)
            for (const NativeFixed& one : *list)
                need(one.is_state ? states.count(one.name) : arrays.count(one.name), "fixed");
    }

    // ---- weights

    void upload() {
        uint64_t total = 0;
        for (auto& [name, one] : arrays) {
            if (name.compare(0, 6, "state.") == 0) continue;
            one.ptr = total;
            total += (one.entry->nbytes + 255) / 256 * 256;
            if (total > uint64_t(MOST)) throw FileFault("has weights that are too large");
        }
        memory.take(gpu, total, "weights");
        for (auto& [name, one] : arrays) {
            if (name.compare(0, 6, "state.") == 0) continue;
            one.ptr += memory.ptr;
            gpu.check(gpu->copy_async(one.ptr, uint64_t(one.entry->data), one.entry->nbytes, 0),
                      "copying weights");
        }
        gpu.check(gpu->stream_synchronize(0), "copying weights");
    }

    // ---- lists and kernels

    const NativeList* list_at(size_t number) {
        if (number >= lists.size()) return nullptr;
        NativeList& one = lists[number];
        if (one.is_read) return &one;
        auto [first, last] = list_places[number];
        const char* place = launches.bytes.data() + first;
        uint64_t header[4], nbytes = last - first;
        if (nbytes < sizeof(header)) return nullptr;
        memcpy(header, place, sizeof(header));
        place += sizeof(header);
        if (header[0] > nbytes || header[1] > nbytes || header[2] > nbytes ||
            sizeof(header) + header[0] * sizeof(LaunchRecord) + header[1] * 8 +
                    header[2] * sizeof(LaunchPatch) != nbytes)
            return nullptr;
        auto copy = [&](auto& out, uint64_t count) {
            out.resize(count);
            size_t size = count * sizeof(out[0]);
            if (size) memcpy(out.data(), place, size);
            place += size;
        };
        copy(one.list.records, header[0]);
        copy(one.list.words, header[1]);
        copy(one.list.patches, header[2]);
        one.scratch_nbytes = header[3];
        one.is_read = true;
        return &one;
    }

    // Whether a list stays inside the memory of a launch; the last part of that memory is scratch.
    bool is_inside(size_t number, const Reach& reach) {
        const NativeList* one = list_at(number);
        if (!one || reach.empty() || one->scratch_nbytes > uint64_t(MOST) ||
            int64_t(one->scratch_nbytes) > std::max(reach.back().second, int64_t(0)))
            return false;
        if (one->list.check(kernels.size(), sizeof(gt_product), reach)) return false;
        for (const LaunchRecord& record : one->list.records)
            if (record.kind == LAUNCH_PRODUCT && !is_sound(one->list, record)) return false;
        return true;
    }

    // Whether a product's numbers are valid, and its patches are those of its addresses.
    static bool is_sound(const LaunchList& list, const LaunchRecord& record) {
        gt_product product;
        memcpy(&product, &list.words[record.first_word], sizeof(product));
        if (!native_product_is_sound(product)) return false;
        constexpr size_t first = offsetof(gt_product, a) / 8, last = offsetof(gt_product, scale_b) / 8;
        for (size_t i = 0; i < record.patch_count; i++) {
            size_t word = list.patches[record.first_patch + i].word - record.first_word;
            if (word < first || word > last) return false;
        }
        return true;
    }

    void load(size_t number) {
        NativeList& one = lists[number];
        if (one.is_loaded) return;
        std::vector<uint64_t> functions;
        for (const LaunchRecord& record : one.list.records)
            functions.push_back(record.kind == LAUNCH_KERNEL
                                    ? function_of(record.kernel, record.most_shared_nbytes)
                                    : 0);
        one.functions = std::move(functions);
        one.is_loaded = true;
    }

    uint64_t function_of(size_t number, uint32_t shared_nbytes) {
        Kernel& kernel = kernels[number];
        if (!kernel.function) load_kernel(kernel);
        if (shared_nbytes > kernel.allowed) {
            gpu.check(gpu->function_allow_shared(kernel.function, int(shared_nbytes)),
                      "allowing a kernel its shared memory");
            kernel.allowed = shared_nbytes;
        }
        return kernel.function;
    }

    // Without this kernel, or if the driver does not support conditions, the host reads flags.
    void load_setter() {
        Kernel& kernel = kernels[size_t(condition)];
        if (!best_image(kernel)) return;
        try {
            setter = function_of(size_t(condition), 0);
        } catch (const ProgramFault&) {
        }
    }

    // A cubin runs on its capability and later minor versions of its generation; PTX on all later ones.
    const Image* best_image(const Kernel& kernel) const {
        const Image* best = nullptr;
        for (const Image& one : kernel.images) {
            if (one.capability > gpu.capability) continue;
            if (one.is_cubin && one.capability / 10 != gpu.capability / 10) continue;
            if (!best || std::pair(one.is_cubin, one.capability) >
                             std::pair(best->is_cubin, best->capability))
                best = &one;
        }
        return best;
    }

    void load_kernel(Kernel& kernel) {
        const Image* best = best_image(kernel);
        if (!best) throw FileFault("has a kernel without code for " + gpu.name());
        PlainEntry code = plain(best->entry, best->sha256);
        need(!code.bytes.empty() && (best->is_cubin || !code.bytes.back()), "a kernel");
        uint64_t module = 0, function = 0;
        gpu.check(gpu->module_load(code.bytes.data(), &module), "loading a kernel");
        if (code.bytes.find("gputensor_starts_early") != code.bytes.npos) module |= 1;
        int status = gpu->module_function(module, kernel.entry.c_str(), &function);
        if (status) gpu->module_unload(module);
        gpu.check(status, "finding the kernel " + MappedFile::shown(kernel.entry));
        modules.push_back(module);
        kernel.function = function;
    }

    std::unique_ptr<MappedFile> apart;
    Json::Value target;
    std::string suffix;
    Json::Value packed;  // decompressed sizes by the names of entries
    PlainEntry launches, steps;
    std::vector<std::pair<uint64_t, uint64_t>> list_places;
    std::vector<std::unique_ptr<std::vector<NativeFixed>>> fixed;
    std::vector<Kernel> kernels;
    int64_t condition = -1;  // number of the kernel that sets conditions, or -1
    std::vector<uint64_t> modules;
    GpuMemory memory;
    std::mutex mutex;
};

}  // namespace gputensor
