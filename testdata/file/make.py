"""Makes the files of this folder: make.py DIR, with pylance 14 from PyPI.

NAME.lance is one data file, NAME.arrow.gz what the reference engine reads back from it (an Arrow stream). Every column that a
version can hold is in types_vXX_ROWS; columns that the engine cannot read beside others are files of their own.
"""
import gzip, decimal, os, sys
import numpy as np, pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter

rng=np.random.default_rng(7)
def md(**k): return {("lance-encoding:"+a.replace('_','-')):b for a,b in k.items()}
def nulls(vals,p=0.2):
    return [None if rng.random()<p else v for v in vals]
def table(n, v):
    t={}
    def add(name, arr, meta=None, nullable=True): t[name]=(arr, meta, nullable)
    i=np.arange(n)
    add('id', pa.array(i, pa.int64()), None, False)
    add('ls', pa.array(nulls(["s%d"%(x%7)*(x%5) for x in i]), pa.large_string()))
    add('lb', pa.array(nulls([bytes([x%256])*(x%9) for x in i]), pa.large_binary()))
    add('ll', pa.array(nulls([list(range(x%4)) if x%6 else [None,1] for x in i]), pa.large_list(pa.int32())))
    add('d256', pa.array(nulls([decimal.Decimal(int(x))*10**20-5 for x in i]), pa.decimal256(50,0)))
    add('d128', pa.array(nulls([decimal.Decimal(int(x))-5 for x in i]), pa.decimal128(30,0)))
    add('f16', pa.array(nulls([np.float16(x/3) for x in i]), pa.float16()))
    add('t32s', pa.array(nulls([int(x%86400) for x in i]), pa.time32('s')))
    add('t32ms', pa.array(nulls([int(x*7%86400000) for x in i]), pa.time32('ms')))
    add('t64us', pa.array(nulls([int(x*7919) for x in i]), pa.time64('us')))
    add('t64ns', pa.array(nulls([int(x*7919) for x in i]), pa.time64('ns')))
    add('d64', pa.array(nulls([int(x)*86400000 for x in i]), pa.date64()))
    for u in ['s','ms','us','ns']:
        add('dur'+u, pa.array(nulls([int(x)*3-4 for x in i]), pa.duration(u)))
    add('tsns', pa.array(nulls([int(x)*3-4 for x in i]), pa.timestamp('ns','America/New_York')))
    add('fsb', pa.array(nulls([bytes([x%256]*5) for x in i]), pa.binary(5)))
    add('fsb1', pa.array([bytes([x%256]) for x in i], pa.binary(1)))
    add('samelen', pa.array(["%06d"%x for x in i]))
    add('dict8', pa.array(nulls(["v%d"%(x%5) for x in i])).cast(pa.dictionary(pa.int8(), pa.string())))
    add('dict32', pa.array(nulls(["v%d"%(x%50) for x in i])).cast(pa.dictionary(pa.int32(), pa.string())))
    add('dicti', pa.array(nulls([int(x%50)*1000 for x in i]), pa.int64()).dictionary_encode())
    add('u8', pa.array(nulls([int(x%256) for x in i]), pa.uint8()))
    add('i16n', pa.array(nulls([int(x%1000)-500 for x in i]), pa.int16()))
    add('boolnn', pa.array([bool(x%3==0) for x in i]))
    add('booln', pa.array(nulls([bool(x%3==0) for x in i])))
    add('fslbool', pa.array([[bool((x+j)%3==0) for j in range(11)] for x in i], pa.list_(pa.bool_(),11)))
    add('fsl16', pa.array(nulls([[np.float16(j+x%10) for j in range(4)] for x in i]), pa.list_(pa.float16(),4)))
    add('fslnull', pa.array(nulls([[None if (x+j)%5==0 else float(j+x%10) for j in range(6)] for x in i]), pa.list_(pa.float32(),6)))
    add('fslbig', pa.array([[float(j+x%10) for j in range(66)] for x in i], pa.list_(pa.float32(),66)))
    add('fslbign', pa.array(nulls([[float(j+x%10) for j in range(66)] for x in i]), pa.list_(pa.float32(),66)))
    add('fslbignn', pa.array(nulls([[None if (x+j)%5==0 else float(j+x%10) for j in range(66)] for x in i]), pa.list_(pa.float32(),66)))
    add('fslfsl', pa.array([[[float(j+k+x%10) for j in range(3)] for k in range(2)] for x in i], pa.list_(pa.list_(pa.float32(),3),2)))
    add('listlist', pa.array(nulls([[[int(x),None][:x%3],[] if x%2 else None,[1,2,3]] if x%5 else [] for x in i]), pa.list_(pa.list_(pa.int32()))))
    add('lll', pa.array(nulls([[[["a%d"%x]*(x%3)],[],[["b"],None]][:x%4] for x in i]), pa.list_(pa.list_(pa.list_(pa.string())))))
    add('liststr', pa.array(nulls([["tag%d"%((x+j)%9) for j in range(x%4)] for x in i]), pa.list_(pa.string())))
    add('listwide', pa.array(nulls([[("w%d "%j)*90 for j in range(x%3)] for x in i]), pa.list_(pa.string())))
    add('listfsl', pa.array(nulls([[[float(j),2.0] for j in range(x%3)] for x in i]), pa.list_(pa.list_(pa.float32(),2))))
    add('zero', pa.array(np.zeros(n), pa.float64()))
    add('constn', pa.array(nulls([42]*n), pa.int32()))
    add('conststr', pa.array(["same"]*n))
    add('conststrn', pa.array(nulls(["same text"]*n)))
    add('constls', pa.array(["same text"]*n, pa.large_string()))
    add('allnull', pa.array([None]*n, pa.float64()))
    add('nullt', pa.nulls(n))
    add('nulllist', pa.array([None]*n, pa.list_(pa.int32())))
    add('emptylist', pa.array([[]]*n, pa.list_(pa.int32())))
    add('nelist', pa.array([[] if x%2 else None for x in i], pa.list_(pa.int32())))
    add('listallnull', pa.array([[None]*(x%3) for x in i], pa.list_(pa.int32())))
    add('listconst', pa.array([[5]*(x%3+1) for x in i], pa.list_(pa.int32())))
    add('words', pa.array([" ".join(rng.choice(['parcel','damage','wet','torn','box','route'],6)) for _ in i]))
    add('long', pa.array(nulls(["".join(rng.choice(list('abcdefgh'),260)) for _ in i])))
    add('huge', pa.array([("h%d"%x)*9000 if x%100==0 else "" for x in i]))
    add('runs', pa.array([int(x//40) for x in i], pa.int64()))
    add('f64', pa.array(nulls(rng.normal(size=n))))
    add('lowdict', pa.array(nulls([["red","green","a rather long colour name, longer than sixteen"][x%3] for x in i])))
    add('i64dict', pa.array([int([10**15,5,2**40][x%3]) for x in i], pa.int64()))
    if v!='2.0':
        add('st', pa.array(nulls([{'a':None if x%3==0 else int(x),'b':{'c':"x%d"%x} if x%4 else None} for x in i]), pa.struct([('a',pa.int32()),('b',pa.struct([('c',pa.string())]))])))
        add('liststruct', pa.array(nulls([[{'p':int(x+j),'q':"q%d"%j} if j%2==0 else None for j in range(x%4)] for x in i]), pa.list_(pa.struct([('p',pa.int64()),('q',pa.string())]))))
        add('structlist', pa.array(nulls([{'l':[int(x)]*(x%3) if x%4 else None,'m':int(x)} for x in i]), pa.struct([('l',pa.list_(pa.int64())),('m',pa.int32())])))
        for s in ['zstd','lz4','none','fsst']:
            add('c_str_'+s, pa.array(nulls(["compress me %d please"%(x%100) for x in i])), md(compression=s))
            if s!='fsst':
                add('c_f32_'+s, pa.array(nulls([float(x)/7 for x in i]), pa.float32()), md(compression=s, **({'bss':'on'} if s!='none' else {})))
                add('c_f64_'+s, pa.array([float(x)/7 for x in i], pa.float64()), md(compression=s, **({'bss':'on'} if s!='none' else {})))
                add('c_i32_'+s, pa.array([int(x)*3-100 for x in i], pa.int32()), md(compression=s))
                if s in ('zstd','lz4'): add('c_wide_'+s, pa.array(nulls(["wide %d "%x*36 for x in i])), md(compression=s))
                add('c_fsl_'+s, pa.array([[float(j+x%10) for j in range(8)] for x in i], pa.list_(pa.float32(),8)), md(compression=s))
        add('rle', pa.array([int(x//300) for x in i], pa.int32()), md(**{'rle_threshold':'0.9'}))
        add('fz', pa.array(nulls([int(x) for x in i]), pa.int32()), md(structural_encoding='fullzip'))
        add('mb', pa.array(nulls(["".join(rng.choice(list('abcdefgh'),260)) for _ in i])), md(structural_encoding='miniblock'))
        add('packed', pa.array([{'a':int(x),'b':float(x)/3,'c':int(x%100)} for x in i], pa.struct([('a',pa.int32()),('b',pa.float64()),('c',pa.uint8())])), {'packed':'true','lance-encoding:packed':'true'})
        add('packedfsl', pa.array([{'a':int(x),'b':[1.0,float(x)]} for x in i], pa.struct([('a',pa.int32()),('b',pa.list_(pa.float32(),2))])), {'lance-encoding:packed':'true'})
    if v=='2.0':
        add('st0', pa.array([{'a':int(x),'b':"x%d"%x} for x in i], pa.struct([('a',pa.int32()),('b',pa.string())])))
        add('liststruct0', pa.array(nulls([[{'p':int(x+j),'q':"q%d"%j} for j in range(x%4)] for x in i]), pa.list_(pa.struct([('p',pa.int64()),('q',pa.string())]))))
        add('z_i32', pa.array([int(x)*3-100 for x in i], pa.int32()), md(compression='zstd'))
        add('z_str', pa.array(["compress me %d please"%(x%100) for x in i]), md(compression='zstd'))
    if v>='2.2':
        add('vpacked', pa.array([{'a':int(x),'b':"text %d"%x,'c':[float(x),1.0]} for x in i], pa.struct([('a',pa.int32()),('b',pa.string()),('c',pa.list_(pa.float32(),2))])), {'lance-encoding:packed':'true'})
        add('map', pa.array(nulls([[("k%d"%j,int(x+j) if j%2 else None) for j in range(x%4)] for x in i]), pa.map_(pa.string(),pa.int32())))
        add('fslstruct', pa.array(nulls([[{'x':int(x),'y':"a"},{'x':None,'y':"b%d"%x}] for x in i]), pa.list_(pa.struct([('x',pa.int32()),('y',pa.string())]),2)))
        add('mapl', pa.array([[("k",["a"]*(x%3))] for x in i], pa.map_(pa.string(),pa.list_(pa.string()))))
    return t

def write(base, n, v, names=None):
    cols = {k: c for k, c in table(n, v).items() if (k == 'fslstruct') == (names == ['fslstruct'])}
    if v == '2.1': cols.pop('packedfsl', None)  # refused: a packed struct with a list
    if not cols: return
    schema = pa.schema([pa.field(k, a.type, nullable=nullable, metadata=meta) for k, (a, meta, nullable) in cols.items()])
    whole = pa.table([a for a, _, _ in cols.values()], schema=schema)
    with LanceFileWriter(base + '.lance', schema, version=v, data_cache_bytes=1) as w:
        for at in range(0, n, 150):  # a page each
            w.write_batch(whole.take(pa.array(range(at, min(at + 150, n)))).combine_chunks())
    back = LanceFileReader(base + '.lance').read_all().to_table() if names is None else whole
    for k in cols:
        a, b = back.column(k), whole.column(k)
        if 'ns' not in str(a.type) and a.to_pylist() != b.to_pylist(): print(base, k, 'differs when read back')
    with gzip.open(base + '.arrow.gz', 'wb', 9) as f:
        with pa.ipc.new_stream(f, back.schema) as w: w.write_table(back.combine_chunks())

out = sys.argv[1]
for v in ['2.0', '2.1', '2.2']:
    for n in [3, 400]:
        for name, names in [('types', None), ('fslstruct', ['fslstruct'])]:
            write(f'{out}/{name}_v{v.replace(".", "")}_{n}', n, v, names)

for v in ['2.0', '2.1']:  # blob columns: refused by the reader
    schema = pa.schema([pa.field('b', pa.large_binary(), metadata={'lance-encoding:blob': 'true'})])
    with LanceFileWriter(f'{out}/blob_v{v.replace(".", "")}.lance', schema, version=v) as w:
        w.write_batch(pa.table([pa.array([b'x' * 100, b'', None], pa.large_binary())], schema=schema))
