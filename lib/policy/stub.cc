#include "policy/policy.h"
#include "stats/stats.h"
#include "base/env.h"
#include "base/log.h"
namespace coco::policy { 
std::optional<Error> from_environment(Policy&p){ const char* n[]={"COCO_ALLTOALL","COCO_ALLTOALLV","COCO_ALLTOALLW","COCO_ALLGATHER","COCO_ALLGATHERV","COCO_BCAST"}; for(int i=0;i<6;i++){auto v=base::env(n[i]); if(!v.empty()){ p.forced[i]=Choice{algorithms::find(v),0}; } } return {}; }
Verdict select(const Policy&p,const Facts&f){ auto&x=p.forced[(int)f.collective]; if(x) return {*x,-1,true}; uint64_t b=f.block_bytes.value_or(0); const char*n="eager"; if(f.collective==algorithms::Collective::bcast) n=b<8192?"eager":"direct"; else if(f.block_bytes&&b>=8192) n="naive"; return {Choice{algorithms::find(n),0},-1,false}; }
}
namespace coco::stats { bool configure(){return true;} bool enabled(){return false;} void record(const Call&){} std::vector<Row> rows(int){return {};} bool report(std::span<const Row>,int){return true;} const ReasonText& text_of(Reason){ static ReasonText t{"x","x","x"}; return t;} }
