// The operators of hls/kernels/ieee.h by hand, to learn what they come to in LUTs. For the area alone:
// it is not synthesised into a kernel, and it is not tested to be equal to them. A significand's
// product is an input, since it is in DSPs. Its figures are in operators.py:
//
//   yosys -p "read_verilog -sv hls/link/ieee_area.v; synth_xilinx -family xcup -flatten -noiopad \
//             -top fma; stat"        # and mul, addf, divf, sqrtf; the sum of LUT1 to LUT6
module lz64(input [63:0] v, output [6:0] n);
  wire [63:0] a0=v; wire z0=(a0[63:32]==0); wire [63:0] a1=z0?a0:{32'b0,a0[63:32]};
  wire z1=(a1[63:16]==0); wire [63:0] a2=z1?a1:(a1>>16);
  wire z2=((a2>>8)==0); wire [63:0] a3=z2?a2:(a2>>8);
  wire z3=((a3>>4)==0); wire [63:0] a4=z3?a3:(a3>>4);
  wire z4=((a4>>2)==0); wire [63:0] a5=z4?a4:(a4>>2);
  wire z5=((a5>>1)==0); wire [63:0] a6=z5?a5:(a5>>1);
  assign n = {1'b0,z0,z1,z2,z3,z4,z5} + (a6==0);
endmodule
module lz32(input [31:0] v, output [6:0] n);
  wire z1=(v[31:16]==0); wire [31:0] a2=z1?v:(v>>16);
  wire z2=((a2>>8)==0); wire [31:0] a3=z2?a2:(a2>>8);
  wire z3=((a3>>4)==0); wire [31:0] a4=z3?a3:(a3>>4);
  wire z4=((a4>>2)==0); wire [31:0] a5=z4?a4:(a4>>2);
  wire z5=((a5>>1)==0); wire [31:0] a6=z5?a5:(a5>>1);
  assign n = {2'b0,z1,z2,z3,z4,z5} + (a6==0);
endmodule
module shr(input [63:0] v, input signed [11:0] d, output [63:0] r);
  wire [63:0] mask = (64'd1 << d[5:0]) - 1;
  wire [63:0] s = (v >> d[5:0]); wire lost = (v & mask)!=0;
  assign r = (d > 63) ? {63'b0, v!=0} : {s[63:1], s[0]|lost};
endmodule
module packm(input s, input signed [11:0] e, input [31:0] m, output [31:0] r);
  wire [31:0] kept={8'b0,m[31:8]}; wire [7:0] rest=m[7:0];
  wire up=(rest>8'h80)||(rest==8'h80 && kept[0]);
  wire [11:0] em=e-1;
  wire [31:0] rounded={em[8:0],23'b0}+kept+up;
  assign r = {s, (rounded>=32'h7f800000)?31'h7f800000:rounded[30:0]};
endmodule
module packn(input s, input signed [11:0] e, input [31:0] m, output [31:0] r);
  wire [63:0] sh; wire signed [11:0] dist = 12'sd1 - e; shr u(.v({32'b0,m}), .d(dist), .r(sh));
  wire n = (e>=1);
  packm p(.s(s),.e(n?e:12'sd1),.m(n?m:sh[31:0]),.r(r));
endmodule
module norm(input s, input signed [11:0] e, input [63:0] m, output [31:0] r);
  wire [6:0] z; lz64 l(.v(m),.n(z));
  wire signed [11:0] room=e-1; wire signed [11:0] zs={5'b0,z};
  wire signed [11:0] left=(zs<room)?zs:room;
  wire [63:0] sr; wire signed [11:0] nl=-left; shr u(.v(m),.d(nl),.r(sr));
  wire [63:0] shifted=(left>=0)?(m<<left[5:0]):sr;
  wire [31:0] up={shifted[63:33], shifted[32] | (shifted[31:0]!=0)};
  wire signed [11:0] ee=e-left;
  packm p(.s(s),.e(ee),.m(up),.r(r));
endmodule
module unp(input [31:0] a, output s, output signed [11:0] e, output [31:0] m, output z, output i, output n);
  assign s=a[31]; assign e=(a[30:23]==0)?12'sd1:{4'b0,a[30:23]};
  assign m={8'b0,(a[30:23]!=0),a[22:0]}; assign z=(a[30:0]==0); assign i=(a[30:0]==31'h7f800000);
  assign n=(a[30:0]>31'h7f800000);
endmodule
module mul(input [31:0] a,b, input [47:0] prod, output [23:0] ma_o, mb_o, output [31:0] r);
  // the product itself is in DSPs: given from outside
  wire sa,sb,za,zb,ia,ib,na,nb; wire signed [11:0] ea,eb; wire [31:0] ma,mb;
  unp ua(a,sa,ea,ma,za,ia,na); unp ub(b,sb,eb,mb,zb,ib,nb);
  assign ma_o=ma[23:0]; assign mb_o=mb[23:0];
  wire s=sa^sb; wire [31:0] x; wire signed [11:0] e = ea+eb-12'sd126;
  norm q(.s(s),.e(e),.m({prod,16'b0}),.r(x));
  assign r=(na|nb)?32'h7fc00000:(ia|ib)?((za|zb)?32'h7fc00000:{s,31'h7f800000}):(za|zb)?{s,31'b0}:x;
endmodule
module sumof(input sa, input signed [11:0] ea, input [63:0] ma, input sb, input signed [11:0] eb, input [63:0] mb, output [31:0] r);
  wire al=(ea>=eb);
  wire sl=al?sa:sb, ss=al?sb:sa; wire signed [11:0] el=al?ea:eb, es=al?eb:ea; wire [63:0] ml=al?ma:mb, ms=al?mb:ma;
  wire [63:0] sh; wire signed [11:0] df = el-es; shr u(.v(ms),.d(df),.r(sh));
  wire sum=(sa==sb); wire sw=!sum && (sh>ml);
  wire [63:0] diff=sw?(sh-ml):(ml-sh);
  wire [63:0] mg=sum?(ml+sh):diff;
  wire [31:0] x; wire signed [11:0] e1=el+1;
  norm q(.s(sw?ss:sl),.e(e1),.m(mg),.r(x));
  assign r=(mg==0)?(sum?{sa,31'b0}:32'b0):x;
endmodule
module addf(input [31:0] a,b, output [31:0] r);
  wire sa,sb,za,zb,ia,ib,na,nb; wire signed [11:0] ea,eb; wire [31:0] ma,mb;
  unp ua(a,sa,ea,ma,za,ia,na); unp ub(b,sb,eb,mb,zb,ib,nb);
  wire [31:0] x; sumof q(sa,ea,{1'b0,ma[23:0],39'b0},sb,eb,{1'b0,mb[23:0],39'b0},x);
  assign r=(na|nb)?32'h7fc00000:ia?((ib&&sa!=sb)?32'h7fc00000:a):ib?b:x;
endmodule
module fma(input [31:0] a,b,c, input [47:0] prod, output [23:0] ma_o, mb_o, output [31:0] r);
  wire sa,sb,sc,za,zb,zc,ia,ib,ic,na,nb,nc; wire signed [11:0] ea,eb,ec; wire [31:0] ma,mb,mc;
  unp ua(a,sa,ea,ma,za,ia,na); unp ub(b,sb,eb,mb,zb,ib,nb); unp uc(c,sc,ec,mc,zc,ic,nc);
  assign ma_o=ma[23:0]; assign mb_o=mb[23:0];
  wire s=sa^sb;
  wire [6:0] pz; lz64 l1(.v({16'b0,prod}),.n(pz)); wire [6:0] cz; lz32 l2(.v(mc),.n(cz));
  wire signed [11:0] pe=ea+eb-12'sd110-{5'b0,pz}; wire signed [11:0] ce=ec+12'sd8-{5'b0,cz};
  wire [6:0] ps=pz-1, cs=cz+31;
  wire [31:0] x;
  sumof q(s,(prod==0)?-12'sd1024:pe,{16'b0,prod}<<ps[5:0],sc,(mc==0)?-12'sd1024:ce,{32'b0,mc}<<cs[5:0],x);
  assign r=(na|nb|nc)?32'h7fc00000:(ia|ib)?((za|zb)?32'h7fc00000:(ic&&sc!=s)?32'h7fc00000:{s,31'h7f800000}):ic?c:x;
endmodule
module nrm(input [31:0] m, input signed [11:0] e, output signed [11:0] eo, output [23:0] mo);
  wire [6:0] z; lz32 l(.v(m),.n(z)); wire signed [11:0] left={5'b0,z}-12'sd8; wire [31:0] t=m<<left[5:0];
  assign eo=e-left; assign mo=t[23:0];
endmodule
module divf(input [31:0] a,b, output [31:0] r);
  wire sa,sb,za,zb,ia,ib,na,nb; wire signed [11:0] ea,eb; wire [31:0] ma,mb;
  unp ua(a,sa,ea,ma,za,ia,na); unp ub(b,sb,eb,mb,zb,ib,nb);
  wire signed [11:0] e1,e2; wire [23:0] d,v; nrm x1(ma,ea,e1,d); nrm x2(mb,eb,e2,v);
  wire lt=d<v; wire signed [11:0] e=e1-e2+12'sd127-{11'b0,lt};
  wire [25:0] rem [0:25]; wire [24:0] q; assign rem[0]=lt?{1'b0,d,1'b0}:{2'b0,d};
  genvar i; generate for(i=0;i<25;i=i+1) begin:g
    wire ge=rem[i]>={2'b0,v}; assign q[24-i]=ge; wire [25:0] t=ge?rem[i]-{2'b0,v}:rem[i]; assign rem[i+1]={t[24:0],1'b0}; end endgenerate
  wire s=sa^sb; wire [31:0] x; packn p(s,e,{q,6'b0,rem[25]!=0},x);
  assign r=(na|nb)?32'h7fc00000:ia?(ib?32'h7fc00000:{s,31'h7f800000}):zb?(za?32'h7fc00000:{s,31'h7f800000}):(za|ib)?{s,31'b0}:x;
endmodule
module sqrtf(input [31:0] a, output [31:0] r);
  wire sa,za,ia,na; wire signed [11:0] ea; wire [31:0] ma; unp ua(a,sa,ea,ma,za,ia,na);
  wire signed [11:0] e1; wire [23:0] d; nrm x1(ma,ea,e1,d);
  wire [49:0] rad = e1[0]?{1'b0,d,25'b0}:{d,26'b0};
  wire [27:0] rem [0:25]; wire [24:0] q [0:25]; assign rem[0]=0; assign q[0]=0;
  genvar i; generate for(i=0;i<25;i=i+1) begin:g
    wire [27:0] n={rem[i][25:0],rad[49-2*i],rad[48-2*i]}; wire [27:0] t={1'b0,q[i],2'b01};
    wire ge=n>=t; assign q[i+1]={q[i][23:0],ge}; assign rem[i+1]=ge?n-t:n; end endgenerate
  wire signed [11:0] eh=(e1+12'sd127)>>>1; wire [31:0] x; packm p(1'b0,eh,{q[25],6'b0,rem[25]!=0},x);
  assign r=za?a:(na|sa)?32'h7fc00000:ia?a:x;
endmodule
