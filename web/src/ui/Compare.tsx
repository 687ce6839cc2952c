export default function Compare(_: any) {
  return <div className="screen empty">Compare</div>;
}
