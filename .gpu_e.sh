S=$(date +%s); t(){ echo "-- $1 $(( $(date +%s) - S ))"; }
mkdir -p /tmp/w $OUT && cp -r . /tmp/w/ && cd /tmp/w && rm -rf build && find . -name '*.so' -delete
GPUTENSOR_BUILD_JOBS=16 python3 setup.py build_ext --inplace > /tmp/build.log 2>&1 || { tail -20 /tmp/build.log; exit 1; }
export PYTHONPATH=/tmp/w NCCL_NVLS_ENABLE=0; t built
P="python3 -m pytest -p no:cacheprovider -p no:benchmark -n 15 --dist loadgroup -vv -rfE -o addopts= --timeout 100"
timeout 75 $P $(cat .gpu_tests) -k cuda -m "not alone and not sweep" > /tmp/conf.txt 2>&1; tail -6 /tmp/conf.txt | cut -c1-300; t conformance
timeout 60 $P tests/gpu/test_convolution.py tests/gpu/test_tiny.py tests/gpu/test_tensor.py -m "not alone and not sweep" > /tmp/gpu.txt 2>&1; tail -5 /tmp/gpu.txt | cut -c1-300; t gpu
timeout 60 python3 benchmarks/convolution.py --batches 32 256 --networks mobilenet_v2 --dtypes bfloat16 2>&1 | grep -E "depthwise|sum|all" | cut -c1-150; t conv
cat > /tmp/few.py <<'P'
import sys, random; sys.path.insert(0, "/tmp/w/benchmarks"); sys.path.insert(0, "/tmp/w")
import torch
from product_sweep import *
rng = random.Random(5)
cases = [(12104,3,9024,"fp32","TN"),(12104,3,9024,"fp32","NN")]
for nb in (12,18,24,40,80,160,320):
    for dt in ("fp32","bf16"):
        n = 8*rng.randrange(100,1200); m = int(nb*2**20/(n*(4 if dt=="fp32" else 2)))
        cases.append((m, rng.randrange(1,4), n, dt, rng.choice(LAYOUTS)[0]+"N"))
for m,k,n,dt,l in [(a,c,b,d,e) if False else (a,b,c,d,e) for a,b,c,d,e in cases]:
    o = Turned((m,n,k,dt,l), torch)
    c = [GpuTensor(o)] + [Torch(o, torch, lib) for lib in ("cublas","cublaslt")]
    t = measured(c, 5); ours = t.pop("gputensor")
    print(m,k,n,dt,l,"%.1f torch %.1f ratio %.2f TB/s %.2f" % (ours, min(t.values()), min(t.values())/ours, m*n*(4 if dt=="fp32" else 2)/ours/1e6), flush=True)
P
timeout 40 python3 /tmp/few.py 2>&1 | tail -20; t few
cp benchmarks/results/convolution.json /tmp/; tar czf $OUT/e.tgz /tmp/conf.txt /tmp/gpu.txt /tmp/convolution.json; t end
